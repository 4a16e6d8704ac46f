"""The names of which scenarios are made. All of them, statutes too, are invented."""

FIRST = (
    "Alder", "Amber", "Basalt", "Beacon", "Birch", "Cedar", "Cobalt", "Corvid", "Delta", "Ember",
    "Falcon", "Fjord", "Garnet", "Granite", "Harbor", "Hazel", "Heron", "Indigo", "Ivory",
    "Juniper", "Kestrel", "Lantern", "Larch", "Linden", "Marble", "Meridian", "Mosaic", "Nimbus",
    "Onyx", "Osprey", "Pelican", "Quarry", "Raven", "Saffron", "Sequoia", "Sierra", "Tamarind",
    "Topaz", "Umber", "Willow",
)  # fmt: skip
SECOND = (
    "line", "gate", "field", "bridge", "point", "stone", "ridge", "crest", "wood", "brook", "haven",
    "mark", "way", "port", "cliff", "shore", "peak", "vale", "reach", "light",
)  # fmt: skip
FORMS = ("Inc.", "Ltd", "LLC", "plc", "AG", "GmbH", "N.V.", "Pte. Ltd.")

PRODUCTS = (
    "tokenized bond order book", "stablecoin wallet", "equity crossing network",
    "perpetual futures desk", "retail options app", "carbon credit auction",
    "foreign exchange streaming service", "repo matching engine", "crypto lending pool",
    "exchange-traded note programme", "municipal bond portal", "index swap facility",
    "prediction contract venue", "fractional share plan", "tokenized fund register",
    "energy derivatives board", "block trade negotiation room", "staking service",
    "smart order gateway", "market data feed", "prime brokerage platform",
    "commodity warehouse receipt exchange", "credit default swap clearing link",
    "private share secondary market", "copy-trading application", "freight futures screen",
    "non-fungible token marketplace", "securities lending hub", "cross-border payment token",
    "systematic internaliser", "weather derivative quote service", "collateral mobility network",
)  # fmt: skip

TOPICS = (
    "Trading Venue Transparency", "Digital Asset Market Structure", "Order Handling Integrity",
    "Investor Asset Protection", "Market Resilience", "Fair Access to Exchanges",
    "Clearing and Settlement Modernisation", "Stable Token Supervision", "Retail Execution Quality",
    "Derivatives Market Stability", "Electronic Trading Oversight", "Intermediary Conduct",
    "Consolidated Tape", "Alternative Trading Systems", "Tokenised Securities",
    "Financial Market Infrastructure", "Broker Accountability", "Wholesale Market Reform",
    "Price Formation", "Crypto Intermediary", "Liquidity Provider", "Capital Market Modernisation",
    "Exchange Governance", "Systemic Venue",
)  # fmt: skip
KINDS = ("Act", "Regulation", "Code", "Rules")
YEARS = (2019, 2020, 2021, 2022, 2023, 2024, 2025, 2026)

JURISDICTIONS = (
    "United States (federal)", "European Union", "United Kingdom", "Singapore", "Switzerland",
    "Japan", "Ontario, Canada", "Australia", "Hong Kong", "New York, United States", "Brazil",
    "South Korea",
)  # fmt: skip

ASKS = (
    "What does the statute ask of {company} for its {product}?",
    "Map how the provided sections bear on {company} and its {product}.",
    "Which duties do the provided sections place on {company} in running its {product}?",
    "How would the provided sections change the way {company} runs its {product}?",
    "{company} wants to know what its {product} must do under the provided sections. Advise.",
)
