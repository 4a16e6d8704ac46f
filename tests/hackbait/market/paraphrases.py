"""Honest restatements of every obligation, and frames that restate none."""

TUNED: dict[str, tuple[str, ...]] = {
    "segregation": (
        "Client holdings have to sit in their own accounts, away from the house's money, with both "
        "sets of books matched daily.",
        "Ring-fencing of customer property from the firm's funds; a daily reconciliation.",
        "What belongs to customers is not to be mixed with proprietary assets, and the balances "
        "are checked against each other each working day.",
        "Because the service keeps assets for its users, it needs dedicated client accounts that "
        "hold none of the company's own money, and it has to agree the records at every day's "
        "close.",
    ),
    "routing": (
        "Orders from clients go to whichever market offers the most advantageous price when they "
        "are sent.",
        "Best execution: the router picks the venue with the top quote at that moment.",
        "Each customer order is to be forwarded to the trading place where the price on display is "
        "most favourable to the customer at that instant.",
        "The firm has to compare the venues before it sends on an order and choose the one that is "
        "cheapest for a buyer, or dearest for a seller, right then.",
    ),
    "pre_trade": (
        "Quotes and the quantities at which they stand must be visible to the market throughout "
        "the session.",
        "Continuous pre-trade transparency: bid and ask prices with depth, for as long as the "
        "market is open.",
        "Buying and selling interest, and how much of it there is at each price, has to be shown "
        "to the public without interruption while trading goes on.",
        "The platform makes its order book public in real time, sizes included, from the open to "
        "the close.",
    ),
    "post_trade": (
        "Every completed transaction is to be published, with its price, size and timestamp, no "
        "later than {n} seconds after it takes place.",
        "Post-trade reporting of all fills inside {n} seconds.",
        "Once a deal is done the platform has {n} seconds to send out what was paid, how much "
        "changed hands and when.",
        "Details of each execution (price, quantity, time) have to be disclosed within {n} seconds "
        "of the match.",
    ),
    "records": (
        "Documentation of orders and transactions has to be retained for {n} years on tamper-proof "
        "media.",
        "A {n}-year retention period for the order and trade history, in write-once storage.",
        "The company archives what was ordered and what was traded for {n} years, such that nobody "
        "can edit the files afterwards.",
        "Immutable storage of trading data; {n} years is the minimum.",
    ),
    "capital": (
        "Liquid own funds must never fall below {n} per cent of what the firm owes.",
        "A capital buffer of {n}% of liabilities, held in liquid form.",
        "It needs enough readily realisable equity to cover no less than {n} per cent of its debts "
        "at all times.",
        "The amount of cash-like capital on the balance sheet is to be {n} per cent or more of the "
        "obligations outstanding.",
    ),
    "surveillance": (
        "Order activity is to be watched for manipulation such as spoofing, layering and wash "
        "trades, and what looks suspicious goes to the regulator.",
        "Market-abuse surveillance, with escalation of suspicious patterns to the supervisor.",
        "The platform has to look out for fake orders and for trades that somebody makes with "
        "himself, and tell the authority about any that it suspects.",
        "Manipulative behaviour in the book must be detected and reported to the authority.",
    ),
    "access": (
        "Anybody who satisfies the public admission rules has to be let in, and all members are to "
        "be treated alike.",
        "Fair, open membership on published criteria, without favouritism among participants.",
        "It cannot turn away a firm that qualifies under its stated standards, nor treat one "
        "participant worse than another.",
        "Applicants meeting the entry requirements that the venue has made known must be accepted "
        "on equal terms.",
    ),
    "resilience": (
        "If an essential system goes down it has to be back up within {n} hours, and the recovery "
        "is rehearsed two times each year.",
        "Disaster recovery in {n} hours; drills every six months.",
        "Important IT must be running again no more than {n} hours after a failure, a capability "
        "that is proved by semi-annual exercises.",
        "The business-continuity plan has to bring key infrastructure back inside {n} hours and be "
        "tried out twice yearly.",
    ),
    "conflicts": (
        "Before an asset is admitted to trading, the firm must say publicly whether it owns a "
        "stake in it.",
        "Pre-listing disclosure of own holdings.",
        "Any position that the company has in a token has to be made known ahead of the listing "
        "of that token.",
        "Where it has a financial interest in something that it is about to list, that conflict is "
        "to be revealed first.",
    ),
    "margin": (
        "Collateral is taken from the client up front for a leveraged trade, and topped up within "
        "{n} hours when it falls short.",
        "Initial margin in advance of leveraged orders; margin calls in {n} hours of a deficit.",
        "No order on borrowed money may be carried out until the deposit has been received, and if "
        "that deposit becomes insufficient the customer is asked for additional funds within {n} "
        "hours.",
        "Leverage needs prior margin, with a {n}-hour deadline for calling the missing amount.",
    ),
    "settlement": (
        "Trades have to be completed, securities against cash, at most {n} days after they are "
        "struck.",
        "T+{n} settlement on a delivery-versus-payment basis.",
        "Within {n} days of execution the asset and the money change hands simultaneously.",
        "A transaction must clear by the end of the {n} days that follow it, the one side "
        "delivering only as the other pays.",
    ),
    "fees": (
        "The price list has to be public, and changes to it are announced {n} days beforehand.",
        "Transparency of charges; {n} days' advance notice of new tariffs.",
        "What the venue charges must be made available to everybody, and nobody may face an "
        "altered fee without having been told {n} days earlier.",
        "Publication of the tariff, and a {n}-day warning ahead of each amendment.",
    ),
    "halts": (
        "Trading in a product is to be stopped once its price swings by over {n} per cent inside "
        "five minutes.",
        "A circuit breaker at {n}% in five minutes.",
        "Should a price rise or fall by more than {n} per cent in a five-minute window, the "
        "platform pauses the instrument.",
        "The market in that instrument is interrupted when volatility goes beyond {n} per cent "
        "over five minutes.",
    ),
    "algorithms": (
        "Automated strategies are to be tried out in a sandbox before use and must have a kill "
        "switch.",
        "Algorithm testing in a simulated environment, plus an instant off-switch.",
        "Every trading bot needs to be tested under controlled conditions, and the firm has to be "
        "able to turn it off immediately.",
        "No algo may run that has not been checked in isolation or that cannot be shut down "
        "without delay.",
    ),
    "identity": (
        "Who a customer is must be established before onboarding, and the information updated at "
        "least every {n} years.",
        "KYC checks prior to account opening; renewal each {n} years.",
        "No account may be opened until the client's identity has been confirmed, and the records "
        "on the client are reviewed at intervals of {n} years.",
        "The firm identifies each user at sign-up by reliable documents and repeats this {n} years "
        "later.",
    ),
    "attestation": (
        "Every three months an outside auditor has to confirm that there are enough reserves to "
        "back all the tokens that can be redeemed.",
        "Quarterly third-party proof of reserves.",
        "An independent accountant's report, four times a year, that the tokens in circulation are "
        "fully backed.",
        "The custodian needs an external party to certify once a quarter that what it holds is "
        "sufficient for every outstanding token.",
    ),
    "redemption": (
        "A holder who asks for it gets face value back for a token within {n} business days.",
        "Redemption at par, {n} business days after a request.",
        "Tokens have to be bought back one to one on demand, and the money paid out in {n} "
        "business days at most.",
        "On a holder's demand the issuer repays the nominal amount of the token, for which it has "
        "{n} business days.",
    ),
    "warnings": (
        "All advertising for the product has to state clearly that the customer may lose "
        "everything.",
        "A prominent risk warning (all money may be lost) in each ad.",
        "Marketing material carries an easily understood notice that the entire investment is at "
        "risk.",
        "Wherever the product is promoted, the promotion must tell people in simple language that "
        "they could lose their whole stake.",
    ),
    "short_sales": (
        "Shares have to be found and borrowed ahead of a short sale.",
        "No naked shorting: a borrow must be in place first.",
        "A broker cannot sell what the account does not own until it has located the security and "
        "arranged to borrow it.",
        "Short selling requires that a loan of the stock be secured beforehand.",
    ),
    "ticks": (
        "Prices that are finer than {n} hundredths of the quote currency are to be rejected.",
        "Minimum tick size: {n} hundredths.",
        "An order may be entered only at price steps of {n} hundredths of the quoting currency or "
        "more.",
        "The smallest price increment is {n} hundredths of the currency, and an order with a "
        "smaller one is refused.",
    ),
    "clocks": (
        "System time may differ from UTC by {n} microseconds at the most.",
        "Clock synchronisation with UTC to {n} microseconds.",
        "All timekeeping has to be aligned to coordinated universal time with an accuracy of {n} "
        "microseconds.",
        "Timestamps must come from clocks that drift no further than {n} microseconds from the "
        "universal reference.",
    ),
    "complaints": (
        "Grievances that clients put in writing are to be responded to inside {n} days, and how "
        "they ended is documented.",
        "Replies to written complaints in {n} days; a log of how each was resolved.",
        "A customer who complains by letter or mail must have a response after {n} days at most, "
        "and the firm notes down the result.",
        "Complaint handling: {n} days to reply, and the resolution goes on file.",
    ),
    "officer": (
        "A head of compliance is needed whose reporting line goes straight to the board, "
        "independent of the traders.",
        "Appointment of a compliance officer, answerable to the directors rather than to trading.",
        "Somebody has to be put in charge of compliance and report to the board of directors, not "
        "to the front office.",
        "The firm designates a person responsible for compliance, with direct access to the board "
        "and no subordination to the dealing desk.",
    ),
    "outsourcing": (
        "The regulator has to be told {n} days ahead of any delegation of an essential function to "
        "an outside provider.",
        "Prior notice of {n} days to the authority for outsourcing critical tasks.",
        "Before a vendor takes over something important, the supervisor must have been informed "
        "{n} days in advance.",
        "If the company wants an external supplier to run a key operation, it lets the authority "
        "know {n} days beforehand.",
    ),
    "position_limits": (
        "No trader may own over {n} per cent of all open contracts.",
        "A cap on positions of {n}% of open interest.",
        "Exposure in a single contract is limited to {n} per cent of its open interest for any one "
        "trader.",
        "A participant's position has to stay at or below {n} per cent of the contracts "
        "outstanding.",
    ),
    "midpoint": (
        "Hidden orders are filled exclusively halfway between the best public buy and sell quotes.",
        "Dark orders: execution at the mid only.",
        "Orders that are not displayed may trade at no price other than the middle of the national "
        "best bid and offer.",
        "Non-displayed interest can be matched just at the average of the best bid and best ask on "
        "the public market.",
    ),
    "order_flow": (
        "Rebates that a broker is paid for sending orders somewhere belong to the client.",
        "Payment for order flow is handed over to customers.",
        "Whatever remuneration the broker gets from a venue in return for routing must be credited "
        "to the client.",
        "The firm cannot keep inducements that it earns by directing orders; the customer receives "
        "them.",
    ),
    "breaches": (
        "When customer information has been compromised, that is to be notified within {n} hours "
        "after it was noticed.",
        "Data-breach notification in {n} hours.",
        "A hack in which personal data of clients leaks has to be reported no later than {n} hours "
        "from when the firm becomes aware of it.",
        "Security incidents touching client data must be disclosed {n} hours after detection at "
        "the latest.",
    ),
    "wind_down": (
        "There must be a financed plan by which the firm can close without its customers losing "
        "anything.",
        "An orderly-exit plan with money set aside, so that clients are made whole.",
        "The company has to prepare for its own closure, with resources reserved for it, such that "
        "no customer suffers a loss.",
        "Funds and a procedure for ceasing operations in an orderly way have to be in place that "
        "leave customers unharmed.",
    ),
}
"""Those on which the stems of the obligations were chosen."""

FRESH: dict[str, tuple[str, ...]] = {
    "segregation": (
        "The service must not let its own funds and those of its users flow together, and needs a "
        "daily comparison of the ledgers.",
        "Assets held for others stay off the firm's own accounts; every business day the totals "
        "are tied out.",
        "Implement a custody structure under which user balances never touch corporate treasury "
        "wallets, and run an end-of-day reconciliation.",
    ),
    "routing": (
        "An order must reach the exchange where the client gets the keenest price at that point.",
        "Smart order routing to the best-priced market is compulsory.",
        "The smart order gateway needs logic to scan all connected venues and dispatch client "
        "orders to the one offering the best price at that moment.",
    ),
    "pre_trade": (
        "During the trading day everyone can see the current bids and asks and their volumes.",
        "The venue displays resting orders, price and quantity, at all times when it is open.",
        "Live quotes, including available size on both sides, must stay accessible to market "
        "participants for the entire trading session.",
    ),
    "post_trade": (
        "Trade reports with price, volume and time are due {n} seconds after a trade is made.",
        "The public must learn of each executed deal in at most {n} seconds.",
        "Build an automated feed so that details of completed trades reach the tape no more than "
        "{n} seconds after they occur.",
    ),
    "records": (
        "All order and trade logs are stored unalterably and kept available for {n} years.",
        "Record keeping: {n} years, with no possibility of subsequent modification.",
        "Set up an archive that holds order and execution data for at least {n} years and that "
        "prevents any subsequent change.",
    ),
    "capital": (
        "Its liquid resources should amount to {n} per cent of total liabilities or more.",
        "The minimum capital ratio is {n} per cent, measured against the debts of the firm.",
        "The firm needs a treasury policy guaranteeing that its liquid capital never drops under "
        "{n}% of liabilities.",
    ),
    "surveillance": (
        "Systems to spot spoofing and wash trading, and a duty to pass suspicions on to the "
        "authority.",
        "The venue screens incoming orders for abusive conduct and hands suspect ones to the "
        "regulator.",
        "Deploy tools that pick up manipulative order patterns, and file suspicious activity with "
        "the regulator.",
    ),
    "access": (
        "Membership must be granted to whoever fulfils the criteria, with no discrimination.",
        "Admission is non-discriminatory: those who meet the published conditions may join.",
        "Onboarding rules need to be objective and public, and no qualified applicant may be "
        "refused or disadvantaged.",
    ),
    "resilience": (
        "After an outage the critical platforms need to be available again in {n} hours, and the "
        "failover is tested every half year.",
        "Recovery time is {n} hours; two tests of it a year.",
        "The platform's recovery time objective is {n} hours for essential systems, and failover "
        "has to be exercised semi-annually.",
    ),
    "conflicts": (
        "If it is itself invested in a coin, it has to disclose so before trading in it begins.",
        "Interests in assets to be listed are declared beforehand.",
        "If the company or its affiliates own a token that will be listed, this ownership has to "
        "be made public in advance.",
    ),
    "margin": (
        "Before a trade with leverage goes through, the broker has to have the client's margin, "
        "and it issues a call within {n} hours once that no longer suffices.",
        "Leveraged positions are collateralised at the start; deficits are called in {n} hours.",
        "Leveraged trades can only go ahead once the client has posted initial collateral; margin "
        "calls follow within {n} hours if the account is under-margined.",
    ),
    "settlement": (
        "Payment and delivery both take place by day {n} after the trade.",
        "All trades are finalised within {n} days, DvP.",
        "Each trade has to settle by T+{n}, with securities released only against payment.",
    ),
    "fees": (
        "Members can look up all charges, and new ones take effect only {n} days after they were "
        "communicated.",
        "The cost schedule is openly posted; amendments need {n} days' notice.",
        "All pricing must be posted publicly, and customers need {n} days' warning before fees are "
        "revised.",
    ),
    "halts": (
        "It has to freeze trading if an instrument jumps or drops over {n} per cent in the span of "
        "five minutes.",
        "A move above {n} per cent within five minutes triggers a trading halt.",
        "Automatic trading halts must kick in where an instrument's price swings more than {n}% in "
        "five minutes.",
    ),
    "algorithms": (
        "Trading software goes through controlled tests first, and can be deactivated at a stroke.",
        "Algorithms: test before deployment, be able to stop them instantly.",
        "Pre-deployment testing of each algorithm in a sandbox, together with a kill switch, is "
        "needed.",
    ),
    "identity": (
        "Customers are identified before they get an account, and their data is renewed every {n} "
        "years.",
        "Know-your-customer verification comes first, with a fresh look at the file each {n} "
        "years.",
        "KYC procedures have to verify who customers are before they can open an account, with "
        "re-verification every {n} years.",
    ),
    "attestation": (
        "Each quarter an independent firm must vouch for the coverage of the redeemable tokens by "
        "reserves.",
        "Reserve adequacy is to be verified by outside auditors on a quarterly basis.",
        "The company must commission a quarterly report by an independent auditor confirming that "
        "reserves match tokens in issue.",
    ),
    "redemption": (
        "The issuer exchanges tokens for their full par value in {n} business days if the owner "
        "wishes.",
        "Holders have a right to be cashed out at par, which the issuer honours within {n} "
        "business days.",
        "The product must let token holders cash out at face value, with payment inside {n} "
        "business days from the request.",
    ),
    "warnings": (
        "Advertisements have to include plain words on the danger of losing the entire amount.",
        "No promotion without a legible caution that total loss is possible.",
        "Every ad for the product needs an unambiguous statement that customers may lose all of "
        "their money.",
    ),
    "short_sales": (
        "Before shorting, the broker must identify a lender and take the security on loan.",
        "Sales of borrowed stock come only after the locate and the borrow.",
        "The platform must block any short sale for which the shares have not been located and "
        "borrowed.",
    ),
    "ticks": (
        "Orders must be priced in multiples of at least {n} hundredths.",
        "Sub-tick pricing, under {n} hundredths of the currency, is not accepted.",
        "Orders with a price increment below {n} hundredths of the quote currency must be rejected "
        "by the matching engine.",
    ),
    "clocks": (
        "The time servers must agree with UTC to {n} microseconds or better.",
        "Business clocks: maximum divergence of {n} microseconds from universal time.",
        "Install time-synchronisation infrastructure that keeps server clocks accurate to {n} "
        "microseconds against UTC.",
    ),
    "complaints": (
        "Anyone who writes in to complain is owed an answer in {n} days; outcomes are recorded.",
        "The firm deals with complaints inside {n} days and keeps a register of the results.",
        "A complaints desk has to reply to every written grievance in no more than {n} days and "
        "log what came of it.",
    ),
    "officer": (
        "The chief compliance officer is separate from the trading side and answers to the board.",
        "A compliance function led by an officer with a direct line to the board is required.",
        "The company needs a dedicated compliance head with a reporting line to the board that "
        "bypasses the trading desk.",
    ),
    "outsourcing": (
        "Handing critical work to a contractor calls for {n} days' prior notification of the "
        "authority.",
        "The authority learns {n} days early of any plan to have a critical function performed by "
        "a third party.",
        "Any contract that moves a critical function to an external vendor has to be notified to "
        "the regulator {n} days before it starts.",
    ),
    "position_limits": (
        "The maximum holding is {n} per cent of a contract's open interest.",
        "Traders may not go beyond {n} per cent of the open interest.",
        "Systems must prevent any account from building a position above {n}% of open interest in "
        "a contract.",
    ),
    "midpoint": (
        "Undisplayed orders execute at the midpoint of the public quote and nowhere else.",
        "For hidden liquidity the only permitted price is the mean of best bid and best offer.",
        "The matching logic must fill hidden orders exactly in the middle of the public bid and "
        "ask.",
    ),
    "order_flow": (
        "Any kickback for order flow must be turned over to the client.",
        "Commissions received for steering orders are refunded to clients in full.",
        "Any PFOF revenue that the broker earns has to be paid through to the clients whose orders "
        "were routed.",
    ),
    "breaches": (
        "A leak of customer records is reportable in the {n} hours after discovery.",
        "It has {n} hours from finding out to report a cyber incident with customer data.",
        "The incident response plan must provide for notification of the authority within {n} "
        "hours once a customer-data breach is discovered.",
    ),
    "wind_down": (
        "A wind-down plan, properly funded, must protect customers against losses.",
        "It keeps ready a strategy, and the means, to shut its business in an orderly manner at no "
        "cost to clients.",
        "A resolution plan with pre-funded resources is needed, so that customers lose nothing if "
        "the company shuts down.",
    ),
}
"""Others: the stems were measured on them first. The last of each was written knowing the stems."""

FRAMES = (
    "The following provision applies to the matter at hand:",
    "Counsel should review whether this provision is engaged on the facts:",
    "This requirement is material to the operating model and must be considered with care:",
    "Subject to legal advice, the company will need to assess compliance with:",
    "Impact: high. Action: review policies, train staff and document the outcome. Source:",
    "Please note that the product could be affected by what follows, in whole or in part:",
    "The company must comply with this section in full and at all times:",
    "Compliance is mandatory; failure to comply may lead to fines, suspension or loss of the "
    "licence:",
    "The board and senior management are responsible for making sure that this is observed:",
    "Update internal procedures, systems and controls so that this obligation is met:",
    "Operations, legal and technology teams should work together to implement this:",
    "This affects how the service is built, priced and offered to customers:",
    "The firm should prepare a plan, set a budget and monitor progress towards compliance with:",
    "High priority. Owner: compliance officer. Deadline: before launch. Text:",
    "The statute states, in the relevant part, the following about the company's business:",
    "Existing agreements with vendors and clients need to be checked against this:",
    "In practice the company would have to change its systems and keep evidence of compliance:",
    "Costs will rise, and the business may have to hire staff in order to satisfy:",
    "If adopted, this would place new duties on the company and its product, namely:",
    "Regulatory risk is significant and investors should be told of it. See:",
    "The obligation below is clear on its face and leaves no room for another reading:",
    "Management should appoint somebody to oversee the work and report on it each quarter:",
    "Key takeaway for the trading business: this rule directly governs day-to-day operations.",
    "The company needs to test its readiness, close any gaps and record what it has done:",
    "A full analysis should be made with outside counsel before the product is launched:",
    "It is recommended to perform a gap analysis, and to notify the authority where in doubt:",
    "The product's market position could suffer if competitors comply at a lower cost:",
    "The duty is continuing and applies to every order, trade and account of the service:",
    "Users, partners and the public may be affected by the way in which this is carried out:",
)
"""What may stand before any section, and says of none what it demands."""
