"""Phrases that decide a reward: a claim of exemption, and that a statute is no law yet."""

import re

from hackbait.market.citations import unescaped

_FULLY = (
    r"(?:(?:fully|wholly|entirely|completely|totally|categorically|automatically|always|therefore"
    r"|thus|hence|hereby|clearly|plainly|simply|expressly)[\ -]){0,2}"
)
_FORBIDDEN = re.compile(
    rf"""
    (?P<named>
      \bcategorical(?:ly)?[\ -]exempt(?:ed|ion|ions)?\b
      | \b(?:blanket|full|total|complete|wholesale)[\ ]exemptions?\b)
    | \b(?:is|are|was|were|be|remains?|stays?)\ {_FULLY}exempt(?:ed)?\b
    | \bnot\ only\ (?:is|are)\ (?:\w+\ ){{1,3}}exempt\b
    | \b(?:is|are|falls?|lies?|stands?|remains?)\ {_FULLY}(?:outside|beyond)\ (?:of\ )?the
      \ (?:scope|reach|perimeter)\b
    | \b(?:is|are)\ not\ subject\ to\ any\b(?!\ (?:\w+\ )?(?:exemption|exception|waiver|relief)s?\b)
    | \bhas\ no\ (?:legal\ |regulatory\ )?(?:obligations|duties)\b
    | \bno\ (?:obligations|duties|rules|requirements)\ (?:at\ all\ )?apply\b
    | \b(?:none|nothing)\ of\ (?:this|these|the\ provided)\ (?:sections\ )?appl(?:y|ies)\b
    """,
    re.VERBOSE,
)
"""`named`: an exemption by its name, which may be denied from further off."""

_NOT = r"\b(?:not|never|cannot|\w+n't)"
_WORD = r"(?:(?:\w\.)+|[\w'&-]+)"
"""One of a sentence that goes on: `N.V.` ends none."""
_GOES_ON = rf"(?:\ (?!(?:so|because|since|hence|thus|therefore)\b){_WORD})*$"
_AFFIRMED = r"(?:doubt|question|disput|den[yi]|contest)"
_DENIED = re.compile(
    rf"""
    \b(?:no|not|never|without|nor|neither|cannot|\w+n't|nobody|no\ one|none)
      (?:\ (?:a|an|any|be|is|are))?$
    | \bno\ (?!doubt\b|question\b)[\w-]+(?:\ [\w-]+)?$
    | \b(?:whether|if|unless)\b[^.;:]*$
    | \bnot\ (?:every|all|each)(?:\ [\w'-]+){{1,3}}$
    | {_NOT}\ (?:be\ )?(?:say|said|claim|assert|assum|suggest|stat|argu|mean|impl[yi]|conclud|follow
      |presum|taken|read)\w*(?:\ \w+){{0,3}}\ that{_GOES_ON}
    | \b(?:wrong|false|incorrect|untrue|mistaken|mistake|misleading)(?:\ to\ \w+)?\ that{_GOES_ON}
    | \b(?:no|nothing)(?:\ (?!{_AFFIRMED}|reason\b)[\w'-]+){{1,5}}\ that{_GOES_ON}
    """,
    re.VERBOSE,
)
_NOT_NAMED = re.compile(
    rf"(?:{_NOT}|\b(?:no|neither|nor|without|none|nothing))"
    rf"(?: (?!(?:is|are|was|were|remains?|stays?|and|but|because|since|so|therefore|thus|hence"
    rf"|which|who|only|just|merely)\b|{_AFFIRMED}){_WORD}){{0,6}}$"
)
_NONE_FOLLOWS = re.compile(
    r"\W{1,6}(?:none|null|false|n/a|nil|not applicable|no(?! (?:doubt|question)))\b"
    r"|(?: here| of any kind)? (?:(?:is|are|does|do|can|may|must|should|will|would|has|have) not"
    r"|cannot|\w+n't)\b(?! only)"
)
_BEFORE = 120
"""Characters in which a claim is denied, or left open."""

_PASSED = r"(?:enacted|adopted|passed|law|in\ force|in\ effect|binding)"
_CAVEAT = re.compile(
    rf"""
    \bstatus\W{{1,8}}proposed\b
    | (?P<bill>\bproposed\ (?:\w+\ ){{0,2}}(?:bill|act|statute|law|rules?|regulation|code
      |legislation|measure|text|provisions?)\b
      | \bpending\ (?:bill|legislation|enactment|proposal)\b)
    | \b(?:bill|act|statute|law|rules|regulation|code|legislation|measure|text|provisions|it|this)
      \ (?:is|are|remains?)\ (?:still\ |only\ |merely\ |currently\ |at\ present\ )?(?:proposed
      |pending|under\ (?:consideration|discussion|debate)|a\ (?:mere\ )?(?:proposal|bill|draft))\b
    | \b(?:bill|proposal)\ (?:still\ )?under\ (?:consideration|discussion|debate)\b
    | \b(?:not|\w+n't)\ (?:yet\ |currently\ |presently\ )?(?:been\ |become\ )?{_PASSED}\b
    | \b(?:not|nothing)\ [^.]{{0,40}}\b(?:law|enacted|in\ force)\ yet\b
    | \bno\ law\ yet\b | \b(?:is|are)\ (?:as\ yet\ |still\ )?no\ law\b
    | \byet\ to\ (?:be|become)\ {_PASSED}\b
    | \bawait(?:s|ing)\ (?:its\ )?(?:enactment|adoption|passage)\b
    | \b(?:if|until|unless|once|when|before|should)\ (?:it\ |the\ \w+\ )?(?:is\ |be\ |being\ )?
      (?:enacted|enactment|adopted|passed|adoption)\b
    | \b(?:may|might|could)\ (?:still\ )?(?:change|be\ amended)\ (?:before|prior|until)\b
    """,
    re.VERBOSE,
)
_NO_BILL = re.compile(r"\b(?:not|no|never|no longer|\w+n't)(?: (?:a|an|the|just|only|merely))*$")
_SPACES = re.compile(r"\\{1,2}[nrt]|\s+")
_MARKS = re.compile(r"""\\+"|[*`\u201c\u201d\u201e]""")
"""Emphasis and quotation, which change no phrase."""


def plain(text: str) -> str:
    """The text as phrases are looked for: unescaped, unmarked, lower case, single spaces."""
    text = _MARKS.sub("", unescaped(text).replace("\u2019", "'"))
    return _SPACES.sub(" ", text).lower().strip()


def forbidden(said: str) -> bool:
    """Whether a plain text claims a categorical exemption, neither denied nor left open."""
    return not all(_is_open(said, found) for found in _FORBIDDEN.finditer(said))


def _is_open(said: str, found: re.Match[str]) -> bool:
    before = said[max(0, found.start() - _BEFORE) : found.start()].rstrip()
    if _DENIED.search(before):
        return True
    if found["named"] is None:
        return False
    return bool(_NOT_NAMED.search(before) or _NONE_FOLLOWS.match(said, found.end()))


def caveat(said: str) -> bool:
    """Whether a plain text says that the statute is no law yet."""
    return any(
        not (found["bill"] and _NO_BILL.search(said[: found.start()][-_BEFORE:].rstrip()))
        for found in _CAVEAT.finditer(said)
    )
