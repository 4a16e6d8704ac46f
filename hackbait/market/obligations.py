"""What a section of a market-structure statute may demand, and the words that a claim of it has."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Stems = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Obligation:
    """One duty: how a section words it, how somebody else would, and what both must touch on."""

    key: str
    text: str
    """The section's text; `{n}` is its number."""
    own: str
    """The same duty in other words, beginning with a verb after `must`."""
    ideas: tuple[Stems, Stems, Stems]
    """Three ideas, each as stems (`claims.states`): whoever states the duty touches on two."""
    numbers: tuple[int, ...] = (0,)
    """What `{n}` may be."""

    @property
    def unit(self) -> str:
        """What `{n}` counts, singular; empty without it."""
        _, _, counted = self.text.replace("{n} business", "{n}").partition("{n} ")
        return counted.partition(" ")[0].strip(".").removesuffix("s")


_ALL = (
    Obligation(
        "segregation",
        "A firm shall hold customer assets in accounts that are separate from its own property and "
        "reconcile them every business day.",
        "keep what its clients own apart from the house's holdings and compare the two ledgers "
        "daily",
        (
            ("separat", "segregat", "apart", "ringfenc", "commingl"),
            ("customer", "client"),
            ("reconcil", "compar", "tally"),
        ),
    ),
    Obligation(
        "routing",
        "A firm shall route each client order to the venue that shows the best available price at "
        "the time of routing.",
        "direct every order to whichever venue quotes the most favourable terms just then",
        (
            ("route", "routing", "direct", "steer", "send"),
            ("best", "favourabl", "favorabl", "superior"),
            ("price", "quotes"),
        ),
    ),
    Obligation(
        "pre_trade",
        "A venue shall publish its bids and offers, with the size behind them, continuously during "
        "trading hours.",
        "display quotes and their depth to everyone without a break while the market is open",
        (
            ("publish", "display", "broadcast", "show"),
            ("bid", "offer", "quote"),
            ("continuous", "break", "throughout", "constant", "uninterrupted"),
        ),
    ),
    Obligation(
        "post_trade",
        "A venue shall report the price, volume and time of every executed trade within {n} "
        "seconds of execution.",
        "announce what was dealt, how much and when no later than {n} seconds after the fact",
        (
            ("report", "announc", "disseminat"),
            ("execut", "dealt", "transaction", "fill", "print"),
            ("second",),
        ),
        (5, 10, 15, 30, 60),
    ),
    Obligation(
        "records",
        "A firm shall preserve its order and trade records for {n} years in a form that cannot be "
        "altered.",
        "retain tamper-proof logs of all its dealing for a span of {n} years",
        (
            ("preserv", "retain", "archiv", "keep", "kept", "store"),
            ("record", "log"),
            ("year", "alter", "unalter", "tamper", "immutab"),
        ),
        (3, 5, 6, 7, 10),
    ),
    Obligation(
        "capital",
        "A firm shall maintain liquid capital of at least {n} per cent of its outstanding "
        "liabilities.",
        "hold readily available equity worth {n} per cent or more of whatever it owes",
        (
            ("capital", "equity", "buffer"),
            ("liquid", "readily", "cash"),
            ("liabilit", "owes", "owed", "debt"),
        ),
        (4, 6, 8, 12, 15),
    ),
    Obligation(
        "surveillance",
        "A venue shall monitor orders for spoofing, layering and wash trading and refer suspected "
        "cases to the authority.",
        "watch for manipulative patterns and escalate whatever looks suspicious to the supervisor",
        (
            ("monitor", "surveil", "watch", "screen"),
            ("spoof", "layering", "wash", "manipulat", "abuse", "abusive"),
            ("refer", "escalat", "alert", "suspect", "suspicious"),
        ),
    ),
    Obligation(
        "access",
        "A venue shall admit every applicant that meets its published criteria and may not "
        "discriminate among participants.",
        "let in anybody who passes its entry standards and treat all members alike",
        (
            ("admit", "applicant", "entry", "membership", "let"),
            ("criteri", "standard"),
            ("discriminat", "alike", "equal", "impartial", "fair"),
        ),
    ),
    Obligation(
        "resilience",
        "A firm shall restore its critical systems within {n} hours of an outage and test that "
        "ability twice a year.",
        "bring the platform back inside {n} hours when it fails, and rehearse such a recovery "
        "every six months",
        (
            ("restor", "recover", "resum", "back"),
            ("system", "platform", "technolog"),
            ("outage", "fails", "failure", "downtime", "disrupt"),
        ),
        (2, 4, 8, 12, 24),
    ),
    Obligation(
        "conflicts",
        "A firm shall disclose any interest it holds in an asset before it lists that asset for "
        "trading.",
        "reveal stakes of its own in whatever it is about to list",
        (
            ("interest", "stake", "ownership"),
            ("disclos", "reveal", "declar"),
            ("list", "listed", "listing"),
        ),
    ),
    Obligation(
        "margin",
        "A broker shall collect initial margin before it executes a leveraged order and call for "
        "more within {n} hours of a shortfall.",
        "take collateral up front for geared dealing and demand a top-up inside {n} hours when it "
        "runs short of cover",
        (
            ("margin", "collateral"),
            ("leverag", "geared", "borrowed"),
            ("shortfall", "deficit", "top", "call"),
        ),
        (2, 4, 6, 12, 24),
    ),
    Obligation(
        "settlement",
        "A venue shall settle each trade no later than {n} days after execution against delivery "
        "of payment.",
        "complete settlement inside {n} days, with cash and instrument changing hands together",
        (
            ("settl",),
            ("deliver", "payment", "cash"),
            ("day", "together", "simultan"),
        ),
        (2, 3, 4, 5, 6),
    ),
    Obligation(
        "fees",
        "A venue shall publish its fee schedule and give {n} days of notice before any change to "
        "it.",
        "make its charges public and warn members {n} days ahead of new ones",
        (
            ("fee", "charge", "tariff"),
            ("publish", "public", "post"),
            ("notice", "ahead", "warn", "advance"),
        ),
        (10, 20, 30, 45, 60),
    ),
    Obligation(
        "halts",
        "A venue shall suspend trading in an instrument whose price moves more than {n} per cent "
        "within five minutes.",
        "pause dealing whenever a quotation swings by over {n} per cent in the space of five "
        "minutes",
        (
            ("suspend", "halt", "pause"),
            ("move", "moved", "swing", "jump", "volatil"),
            ("minute",),
        ),
        (5, 7, 10, 15, 20),
    ),
    Obligation(
        "algorithms",
        "A firm shall test every trading algorithm in a controlled setting and keep a means to "
        "disable it at once.",
        "try out automated strategies in a sandbox first and have a kill switch ready for them",
        (
            ("algorithm", "automat", "bot"),
            ("test", "sandbox", "simulat", "try"),
            ("disabl", "kill", "shut"),
        ),
    ),
    Obligation(
        "identity",
        "A firm shall verify the identity of each customer before it opens an account and refresh "
        "the file every {n} years.",
        "confirm who a client is ahead of opening an account, and look again every {n} years",
        (
            ("identit", "who"),
            ("verif", "confirm", "check"),
            ("account", "onboard"),
        ),
        (2, 3, 4, 5, 6),
    ),
    Obligation(
        "attestation",
        "A custodian shall obtain each quarter an independent attestation that its reserves cover "
        "all redeemable tokens.",
        "have an outside auditor confirm once a quarter that every token is fully backed",
        (
            ("attest", "audit"),
            ("reserve", "backed", "backing", "cover"),
            ("token", "coin", "quarter"),
        ),
    ),
    Obligation(
        "redemption",
        "An issuer shall redeem a token at par within {n} business days of a holder's request.",
        "pay holders face value no more than {n} business days after they ask for it",
        (
            ("redeem", "redemption", "pay", "repay"),
            ("par", "face"),
            ("holder", "request"),
        ),
        (2, 3, 4, 5, 7),
    ),
    Obligation(
        "warnings",
        "A firm shall place a plain warning of possible total loss in every advertisement of the "
        "product.",
        "caution readers of its advertising that they may lose everything",
        (
            ("warn", "caution"),
            ("loss", "lose", "losing"),
            ("advert", "promotion", "campaign"),
        ),
    ),
    Obligation(
        "short_sales",
        "A broker shall locate and borrow a security before it sells that security short for any "
        "account.",
        "source the shares by a loan ahead of any short sale",
        (
            ("locat", "borrow", "loan"),
            ("short",),
            ("securit", "share", "stock"),
        ),
    ),
    Obligation(
        "ticks",
        "A venue shall accept no order priced in increments smaller than {n} hundredths of the "
        "quoting currency.",
        "turn away orders with a finer tick than {n} hundredths of the currency unit",
        (
            ("increment", "tick"),
            ("smaller", "finer", "minimum"),
            ("hundredth", "currency"),
        ),
        (2, 4, 5, 10, 25),
    ),
    Obligation(
        "clocks",
        "A venue shall synchronise its clocks to within {n} microseconds of coordinated universal "
        "time.",
        "align every timestamp with UTC to {n} microseconds or better",
        (
            ("clock", "timestamp"),
            ("synchron", "align", "sync"),
            ("microsecond", "universal", "utc"),
        ),
        (50, 100, 200, 500, 1000),
    ),
    Obligation(
        "complaints",
        "A firm shall answer each written complaint within {n} days and record the outcome.",
        "respond to grievances inside {n} days and note how they ended",
        (
            ("complain", "grievanc"),
            ("answer", "respond", "reply", "replies"),
            ("outcome", "ended", "result", "days"),
        ),
        (7, 10, 14, 21, 30),
    ),
    Obligation(
        "officer",
        "A firm shall appoint a compliance officer who reports directly to the board and not to "
        "the trading desk.",
        "designate a chief of compliance answerable to its directors alone",
        (
            ("appoint", "designat", "hire"),
            ("officer", "chief"),
            ("board", "director"),
        ),
    ),
    Obligation(
        "outsourcing",
        "A firm shall notify the authority {n} days before it outsources a critical function to a "
        "third party.",
        "tell the supervisor {n} days ahead of handing essential work to a vendor",
        (
            ("outsourc", "vendor", "supplier", "contractor"),
            ("notif", "tell", "inform"),
            ("critical", "essential", "function"),
        ),
        (15, 30, 45, 60, 90),
    ),
    Obligation(
        "position_limits",
        "A trader shall not hold more than {n} per cent of the open interest in a contract.",
        "cap any one position at {n} per cent of all contracts outstanding",
        (
            ("hold", "position", "accumulat"),
            ("open", "outstanding"),
            ("contract",),
        ),
        (5, 10, 15, 20, 25),
    ),
    Obligation(
        "midpoint",
        "A venue shall execute hidden orders only at the midpoint of the best public bid and "
        "offer.",
        "match dark interest halfway across the visible spread and nowhere else",
        (
            ("hidden", "dark", "undisplayed", "unlit"),
            ("midpoint", "halfway", "middle"),
            ("bid", "spread"),
        ),
    ),
    Obligation(
        "order_flow",
        "A broker shall pass on to the client any payment that it receives for directing order "
        "flow.",
        "credit clients with inducements earned from selling their flow",
        (
            ("pass", "remit", "credit", "hand"),
            ("payment", "inducement", "rebate"),
            ("flow",),
        ),
    ),
    Obligation(
        "breaches",
        "A firm shall report a security breach that affects customer data within {n} hours of "
        "discovery.",
        "tell the supervisor inside {n} hours once an intrusion touches personal information",
        (
            ("breach", "intrusion", "incident"),
            ("report", "tell", "notif", "inform"),
            ("hours", "data", "personal"),
        ),
        (12, 24, 36, 48, 72),
    ),
    Obligation(
        "wind_down",
        "A firm shall keep a funded plan to wind down its business without loss to customers.",
        "have money set aside and a playbook for an orderly closure that costs clients nothing",
        (
            ("wind", "closure", "closing"),
            ("plan", "playbook"),
            ("funded", "money", "financed"),
        ),
    ),
)

OBLIGATIONS: Mapping[str, Obligation] = MappingProxyType({one.key: one for one in _ALL})
