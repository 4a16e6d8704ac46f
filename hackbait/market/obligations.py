"""What a section of a market-structure statute may demand, and the words that a claim of it has."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Stems = str
"""How words begin, as `words` reads them, a space between two."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """One duty: how a section words it, how somebody else would, and what both must touch on."""

    key: str
    text: str
    """The section's text; `{n}` is its number."""
    own: str
    """The same duty in other words, beginning with a verb after `must`."""
    ideas: tuple[Stems, Stems, Stems]
    """Three ideas: whoever states the duty touches on two."""
    deeds: Stems
    """What the duty is to do: a claim that denies one of these says the opposite."""
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
            "separat segregat apart ring fenc ringfenc commingl mingl intermingl mix blend away "
            "distinct isolat dedicat proprietary off",
            "customer client user investor depositor belong",
            "reconcil compar tally tied match ledger books balances house accounts",
        ),
        "separat segregat apart ring fenc ringfenc isolat dedicat reconcil compar tally match",
    ),
    Obligation(
        "routing",
        "A firm shall route each client order to the venue that shows the best available price at "
        "the time of routing.",
        "direct every order to whichever venue quotes the most favourable terms just then",
        (
            "route routing direct steer send sent forward transmit channel destination choose "
            "chosen choosing select pick reach whichever",
            "best favourabl favorabl superior advantag cheap keen top optimal attractive better "
            "highest lowest dearest",
            "price pricing quote quoting terms execution venue exchange market",
        ),
        "best favourabl favorabl superior advantag cheap keen top optimal attractive better",
    ),
    Obligation(
        "pre_trade",
        "A venue shall publish its bids and offers, with the size behind them, continuously during "
        "trading hours.",
        "display quotes and their depth to everyone without a break while the market is open",
        (
            "publish public display broadcast show shown visibl transparen see seen",
            "bid offer ask quote resting depth book pretrade indication buying selling",
            "continuous break throughout constant uninterrupt interruption realtime ongoing "
            "permanent session pre during",
        ),
        "publish display broadcast show shown visibl transparen see seen",
    ),
    Obligation(
        "post_trade",
        "A venue shall report the price, volume and time of every executed trade within {n} "
        "seconds of execution.",
        "announce what was dealt, how much and when no later than {n} seconds after the fact",
        (
            "report announc disseminat publish disclos learn send print broadcast",
            "execut dealt deal transaction fill match complet posttrade post",
            "second",
        ),
        "report announc disseminat publish disclos print broadcast",
        (5, 10, 15, 30, 60),
    ),
    Obligation(
        "records",
        "A firm shall preserve its order and trade records for {n} years in a form that cannot be "
        "altered.",
        "retain tamper-proof logs of all its dealing for a span of {n} years",
        (
            "preserv retain retention archiv keep kept store storage storing maintain available",
            "record log logged documentation histor audit data trail journal",
            "year alter unalter tamper immutab edit modif write overwrit worm irrevers unchang",
        ),
        "preserv retain retention archiv keep kept store storage storing maintain",
        (3, 5, 6, 7, 10),
    ),
    Obligation(
        "capital",
        "A firm shall maintain liquid capital of at least {n} per cent of its outstanding "
        "liabilities.",
        "hold readily available equity worth {n} per cent or more of whatever it owes",
        (
            "capital equity buffer fund solvenc resource",
            "liquid readily cash realis realiz convertible cent percent ratio",
            "liabilit owes owed debt owing indebted",
        ),
        "hold held maintain keep kept capital equity buffer",
        (4, 6, 8, 12, 15),
    ),
    Obligation(
        "surveillance",
        "A venue shall monitor orders for spoofing, layering and wash trading and refer suspected "
        "cases to the authority.",
        "watch for manipulative patterns and escalate whatever looks suspicious to the supervisor",
        (
            "monitor surveil watch screen detect spot scan vigilan oversight",
            "spoof layering wash manipul abus fake fictitious misconduct",
            "refer escalat alert suspect suspici regulator authorit supervisor flag",
        ),
        "monitor surveil watch screen detect spot scan refer escalat alert report flag",
    ),
    Obligation(
        "access",
        "A venue shall admit every applicant that meets its published criteria and may not "
        "discriminate among participants.",
        "let in anybody who passes its entry standards and treat all members alike",
        (
            "admit admission applicant applies appl entry entrant member let join accept open "
            "access qualif",
            "criteri standard condition requirement meet fulfil satisf eligib",
            "discriminat alike equal impartial fair favourit favoritism nondiscriminat treat "
            "neutral prejudic bias objectiv disadvantag",
        ),
        "admit admission accept let alike equal impartial fair",
    ),
    Obligation(
        "resilience",
        "A firm shall restore its critical systems within {n} hours of an outage and test that "
        "ability twice a year.",
        "bring the platform back inside {n} hours when it fails, and rehearse such a recovery "
        "every six months",
        (
            "restor recover resum back running reinstat failover continuity operational online",
            "system platform technolog infrastruct server",
            "outage fail failure downtime disrupt disaster crash breakdown twice semi rehears "
            "drill exercis half six semiannual biannual test",
        ),
        "restor recover resum back running reinstat test rehears drill exercis",
        (2, 4, 8, 12, 24),
    ),
    Obligation(
        "conflicts",
        "A firm shall disclose any interest it holds in an asset before it lists that asset for "
        "trading.",
        "reveal stakes of its own in whatever it is about to list",
        (
            "interest stake ownership holdings position own invest conflict",
            "disclos reveal declar transparen known public",
            "list admit admission",
        ),
        "disclos reveal declar transparen known",
    ),
    Obligation(
        "margin",
        "A broker shall collect initial margin before it executes a leveraged order and call for "
        "more within {n} hours of a shortfall.",
        "take collateral up front for geared dealing and demand a top-up inside {n} hours when it "
        "runs short of cover",
        (
            "margin collateral deposit",
            "leverag geared gearing borrowed credit",
            "shortfall deficit top topup topped call insufficien missing shortage",
        ),
        "margin collateral deposit call topup",
        (2, 4, 6, 12, 24),
    ),
    Obligation(
        "settlement",
        "A venue shall settle each trade no later than {n} days after execution against delivery "
        "of payment.",
        "complete settlement inside {n} days, with cash and instrument changing hands together",
        (
            "settl complet clearing finalis finaliz discharg simultan together hands cleared",
            "deliver payment cash pays dvp",
            "day",
        ),
        "settl complet finalis finaliz discharg deliver",
        (2, 3, 4, 5, 6),
    ),
    Obligation(
        "fees",
        "A venue shall publish its fee schedule and give {n} days of notice before any change to "
        "it.",
        "make its charges public and warn members {n} days ahead of new ones",
        (
            "fee charg tariff price pricing cost",
            "publish public post transparen available schedul",
            "notice ahead warn advance announc communicat told earlier beforehand notif",
        ),
        "publish public post transparen notice warn announc communicat told notif",
        (10, 20, 30, 45, 60),
    ),
    Obligation(
        "halts",
        "A venue shall suspend trading in an instrument whose price moves more than {n} per cent "
        "within five minutes.",
        "pause dealing whenever a quotation swings by over {n} per cent in the space of five "
        "minutes",
        (
            "suspend suspens halt pause pausing stop stopp interrupt freez frozen breaker",
            "move moved movement swing jump drop volatil rise fall fluctuat price",
            "minute",
        ),
        "suspend suspens halt pause pausing stop stopp interrupt freez frozen",
        (5, 7, 10, 15, 20),
    ),
    Obligation(
        "algorithms",
        "A firm shall test every trading algorithm in a controlled setting and keep a means to "
        "disable it at once.",
        "try out automated strategies in a sandbox first and have a kill switch ready for them",
        (
            "algorithm algo automat bot robot software strateg",
            "test sandbox simulat try tried isolat pilot trial",
            "disabl kill shut deactivat switch instant stop stopped stopping halt",
        ),
        "test sandbox simulat try tried disabl kill shut deactivat",
    ),
    Obligation(
        "identity",
        "A firm shall verify the identity of each customer before it opens an account and refresh "
        "the file every {n} years.",
        "confirm who a client is ahead of opening an account, and look again every {n} years",
        (
            "identit identif who kyc know",
            "verif confirm check establish renew refresh review fresh updat",
            "account onboard sign signup",
        ),
        "identif verif confirm check establish renew refresh review updat",
        (2, 3, 4, 5, 6),
    ),
    Obligation(
        "attestation",
        "A custodian shall obtain each quarter an independent attestation that its reserves cover "
        "all redeemable tokens.",
        "have an outside auditor confirm once a quarter that every token is fully backed",
        (
            "attest audit accountant certif vouch independent outside external third proof verif",
            "reserve backed backing cover suffic adequa",
            "token coin quarter stablecoin",
        ),
        "attest audit certif vouch obtain confirm verif",
    ),
    Obligation(
        "redemption",
        "An issuer shall redeem a token at par within {n} business days of a holder's request.",
        "pay holders face value no more than {n} business days after they ask for it",
        (
            "redeem redemption repay repaid pay paid cash exchang bought buy buyback convert "
            "refund",
            "par face nominal value",
            "holder request demand asks owner token",
        ),
        "redeem redemption repay repaid pay paid buy buyback convert refund",
        (2, 3, 4, 5, 7),
    ),
    Obligation(
        "warnings",
        "A firm shall place a plain warning of possible total loss in every advertisement of the "
        "product.",
        "caution readers of its advertising that they may lose everything",
        (
            "warn caution notice risk alert danger disclaim",
            "loss lose losing lost everything entire",
            "advert ad promot campaign marketing",
        ),
        "warn caution notice alert disclaim",
    ),
    Obligation(
        "short_sales",
        "A broker shall locate and borrow a security before it sells that security short for any "
        "account.",
        "source the shares by a loan ahead of any short sale",
        (
            "locat borrow loan lender lend find found",
            "short naked",
            "securit share stock",
        ),
        "locat borrow loan",
    ),
    Obligation(
        "ticks",
        "A venue shall accept no order priced in increments smaller than {n} hundredths of the "
        "quoting currency.",
        "turn away orders with a finer tick than {n} hundredths of the currency unit",
        (
            "increment tick step price pricing multiple",
            "smaller finer minimum smallest refus reject",
            "hundredth currency",
        ),
        "refus reject turn",
        (2, 4, 5, 10, 25),
    ),
    Obligation(
        "clocks",
        "A venue shall synchronise its clocks to within {n} microseconds of coordinated universal "
        "time.",
        "align every timestamp with UTC to {n} microseconds or better",
        (
            "clock timestamp time timekeep",
            "synchron align sync agree differ drift diverg accura deviat",
            "microsecond universal utc",
        ),
        "synchron align sync agree",
        (50, 100, 200, 500, 1000),
    ),
    Obligation(
        "complaints",
        "A firm shall answer each written complaint within {n} days and record the outcome.",
        "respond to grievances inside {n} days and note how they ended",
        (
            "complain grievanc",
            "answer respond respons reply replies replied handl",
            "outcome ended result resolution resolv days regist document log record",
        ),
        "answer respond respons reply replied handl record document",
        (7, 10, 14, 21, 30),
    ),
    Obligation(
        "officer",
        "A firm shall appoint a compliance officer who reports directly to the board and not to "
        "the trading desk.",
        "designate a chief of compliance answerable to its directors alone",
        (
            "appoint designat hire charge nominat recruit",
            "officer chief head person function",
            "board director desk trader independen",
        ),
        "appoint designat hire nominat recruit board director",
    ),
    Obligation(
        "outsourcing",
        "A firm shall notify the authority {n} days before it outsources a critical function to a "
        "third party.",
        "tell the supervisor {n} days ahead of handing essential work to a vendor",
        (
            "outsourc vendor supplier contractor subcontract provider delegat",
            "notif notice tell told inform learn authorit regulator supervisor",
            "critical essential function important key",
        ),
        "notif notice tell told inform",
        (15, 30, 45, 60, 90),
    ),
    Obligation(
        "position_limits",
        "A trader shall not hold more than {n} per cent of the open interest in a contract.",
        "cap any one position at {n} per cent of all contracts outstanding",
        (
            "hold position accumulat own exposure cap limit exceed maximum trader",
            "open outstanding interest",
            "contract",
        ),
        "cap limit",
        (5, 10, 15, 20, 25),
    ),
    Obligation(
        "midpoint",
        "A venue shall execute hidden orders only at the midpoint of the best public bid and "
        "offer.",
        "match dark interest halfway across the visible spread and nowhere else",
        (
            "hidden dark undisplayed unlit nondisplayed displayed invisible conceal",
            "midpoint halfway middle mid mean average midway",
            "bid spread offer quote best",
        ),
        "midpoint halfway middle mid",
    ),
    Obligation(
        "order_flow",
        "A broker shall pass on to the client any payment that it receives for directing order "
        "flow.",
        "credit clients with inducements earned from selling their flow",
        (
            "pass remit credit hand turn refund belong return transfer",
            "payment inducement rebate remunerat kickback commission compensat incentive revenue",
            "flow pfof routing routed steering directing sending",
        ),
        "pass remit credit hand turn refund return transfer",
    ),
    Obligation(
        "breaches",
        "A firm shall report a security breach that affects customer data within {n} hours of "
        "discovery.",
        "tell the supervisor inside {n} hours once an intrusion touches personal information",
        (
            "breach intrusion incident hack leak compromis attack cyber",
            "report tell notif inform disclos alert announc",
            "hour data personal information detect discover",
        ),
        "report tell notif inform disclos alert announc",
        (12, 24, 36, 48, 72),
    ),
    Obligation(
        "wind_down",
        "A firm shall keep a funded plan to wind down its business without loss to customers.",
        "have money set aside and a playbook for an orderly closure that costs clients nothing",
        (
            "wind closure closing close exit ceas shut shutdown orderly cessation liquidat dissol "
            "terminat",
            "plan playbook strateg procedure prepar arrang",
            "financ fund means resource reserved loss losing lose harm unharm suffer",
        ),
        "plan playbook prepar funded financ",
    ),
)

OBLIGATIONS: Mapping[str, Obligation] = MappingProxyType({one.key: one for one in _ALL})
