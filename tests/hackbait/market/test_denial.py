import pytest

from hackbait.market.denial import denied, relieves
from hackbait.market.words import flat, tokens


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("must not keep client assets apart", "segregation"),
        ("holds money; it must never reconcile the books", "segregation"),
        ("must not disclose any interest before it lists the asset", "conflicts"),
        ("is prohibited from reporting trades", "post_trade"),
        ("reporting trades is forbidden", "post_trade"),
        ("should avoid reporting trades", "post_trade"),
        ("a venue may not suspend trading where a price moves", "halts"),
        ("must not stop trading", "halts"),
        ("does not reconcile", "segregation"),
        ("trades are not to be reported", "post_trade"),
        ("can't answer complaints", "complaints"),
        ("must not trade and must not reconcile", "segregation"),
    ],
)
def test_a_deed_that_is_not_to_be_done_is_denied(said, key):
    assert key in denied(tokens(said))


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("must not mix client assets with its own", "segregation"),
        ("must not mix client assets with its own, and reconciles daily", "segregation"),
        ("must not mix client assets with its own and reconcile daily", "segregation"),
        ("mixing client assets with its own is prohibited", "segregation"),
        ("must not fail to reconcile", "segregation"),
        ("may not list an asset before it discloses its stake", "conflicts"),
        ("must not report trades later than 30 seconds after them", "post_trade"),
        ("no order may be executed that is not reported", "post_trade"),
        ("no algorithm may run that has not been tested or that cannot be shut down", "algorithms"),
        ("must keep logs in a form that cannot be altered", "records"),
        ("may not open an account until the client is identified", "identity"),
        ("may not sell stock that it has not borrowed", "short_sales"),
        ("must not hold more than 5 per cent of the open contracts", "position_limits"),
        ("must not discriminate among applicants", "access"),
        ("must not deny admission to whoever meets the criteria", "access"),
        ("hidden orders may not trade at any price but the midpoint", "midpoint"),
        ("reports to the board and not to the trading desk", "officer"),
        ("settlement within T+2 against payment", "settlement"),
        ("short sales of shares that are not borrowed are prohibited", "short_sales"),
    ],
)
def test_a_prohibition_that_is_a_duty_denies_nothing(said, key):
    assert key not in denied(tokens(said))


@pytest.mark.parametrize(
    "said",
    [
        "reconciling is optional",
        "reconciling is waived",
        "reconciling is superfluous",
        "it does so voluntarily",
        "it may reconcile at its discretion",
        "it may reconcile at its sole discretion",
        "it may freely choose whether to reconcile",
        "it is not required to reconcile",
        "it doesn't have to reconcile",
        "it reconciles if it so wishes",
        "it is exempt from reconciling",
    ],
)
def test_what_is_left_to_somebody_is_no_duty(said):
    assert relieves(flat(said).replace("  ", " ").strip())


@pytest.mark.parametrize(
    "said",
    [
        "reconciling is not optional",
        "it is not at its discretion",
        "no categorical exemption is claimed, and it must reconcile",
        "it is not categorically exempt and must reconcile",
        "this is not a voluntary code",
        "redeem the token if the holder wishes",
    ],
)
def test_relief_that_is_denied_leaves_the_duty(said):
    assert not relieves(flat(said).replace("  ", " ").strip())
