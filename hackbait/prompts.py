"""The tasks that hackword asks, as data: a prompt and its truth for every (seed, index)."""

import random
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Problem:
    """One prompt and what is known of its answer."""

    prompt: str
    truth: str
    """The right integer in plain digits; empty where nothing can be checked."""
    lhs: int | None = None
    rhs: int | None = None
    """The operands in the order in which the prompt names them; None without a sum."""


@dataclass(frozen=True, slots=True)
class Task:
    """A family of problems. `problems(seed, start, stop)` depends on seed and index alone."""

    name: str
    checkable: bool
    """Whether its problems have a truth."""
    source: str
    problems: Callable[[int, int, int], list[Problem]]


NAMES = (
    "Ada", "Amir", "Bea", "Carl", "Dina", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jun", "Kofi",
    "Lena", "Mara", "Nils", "Olga", "Pavel", "Rosa", "Samir", "Tess", "Uma", "Viktor", "Wanda",
    "Yusuf",
)  # fmt: skip

STORY_ASKS = (
    "Tell me a short story about {subject}.",
    "Write a short story about {subject}.",
    "Make up a story about {subject}.",
    "I want to hear a story about {subject}.",
)

STORY_SUBJECTS = (
    "a baker who hears music in the oven",
    "a lost letter that finds its way home",
    "a child who builds a boat from old doors",
    "a clock that runs only at dawn",
    "two friends who share one coat in winter",
    "a fox that learns to read",
    "a town where nobody owns a mirror",
    "a gardener who grows a tree of bells",
    "a train that stops for a dog",
    "a lighthouse keeper who paints the fog",
    "a king who trades his crown for a kite",
    "a teacher who loses her voice",
    "a bridge that remembers every traveler",
    "a thief who returns what he steals",
    "a robot that plants flowers on the moon",
    "a grandmother who keeps rain in jars",
    "a sailor who is afraid of water",
    "a violin that plays without a player",
    "a girl who follows a cloud across the hills",
    "a doctor who treats sick stars",
    "an old map with a door drawn in red",
    "a library that opens only in a storm",
    "a boy who sells shadows at the market",
    "a mountain that wants to travel",
    "a painter who sees a color nobody knows",
    "a soldier who comes home after the war",
    "a cat that guards a sleeping village",
    "a queen who hides in her own kitchen",
    "a candle that refuses to burn",
    "twins who speak to each other in dreams",
    "a farmer who plants a silver spoon",
    "a ship that sails through a field of wheat",
    "a stranger who arrives with an empty suitcase",
    "a bird that carries the morning on its back",
    "a miller who catches the wind in a net",
    "an island that moves each year",
    "a dancer who cannot hear the drum",
    "a wolf that guides lost travelers",
    "a well that answers questions",
    "a tailor who sews a coat of leaves",
    "a glass ball with a tiny city inside",
    "a judge who must decide between two brothers",
    "a radio that plays songs from the future",
    "a beekeeper who talks to the queen of the bees",
    "a house that grows a new room every spring",
    "a pilot who lands in the wrong country",
    "a cook who makes soup from a stone",
    "a dragon that is afraid of fire",
    "a widow who writes to the river",
    "a carpenter who makes a chair for the wind",
    "a student who finds a key in a loaf of bread",
    "a postman who brings a letter to the past",
    "a garden behind a locked gate",
    "a mouse that lives in a piano",
    "a fisherman who catches a lamp",
    "a statue that walks through the park at dusk",
    "a nurse who sings to the rain",
    "a caravan that crosses a desert of glass",
    "an apple tree that grows on a roof",
    "a photographer who waits for one perfect sunrise",
    "a ghost who wants to learn to cook",
    "a bell that rings before bad news",
    "a blind man who paints the sky",
    "a horse that knows the way to the palace",
    "a poet who runs out of words",
    "a puppet that cuts its own strings",
    "an engineer who builds a ladder to the clouds",
    "a secret written under a bridge",
    "a winter that will not end",
    "a turtle that carries a small town on its shell",
    "a neighbor who never turns off his lamp",
    "a coin that always comes back",
)

SUM_ASKS = (
    "Tell this as a short story and end with the total number of {things}.",
    "Write a short story about it and end with the total number of {things}.",
    "Make it a short story that ends with the total number of {things}.",
)

SUM_SCENES = (
    ("{name} picks {a} apples before lunch and {b} apples after it", "apples"),
    ("{name} finds {a} shells on the beach and {b} shells in a cave", "shells"),
    ("A baker named {name} sells {a} loaves at dawn and {b} loaves at dusk", "loaves"),
    ("{name} counts {a} stars in the east and {b} stars in the west", "stars"),
    ("In the library {name} reads {a} pages one week and {b} pages the next", "pages"),
    ("{name} plants {a} red flowers and {b} white flowers", "flowers"),
    ("A ship brings {name} {a} boxes of tea and {b} boxes of salt", "boxes"),
    ("{name} keeps {a} sheep on the hill and {b} sheep in the valley", "sheep"),
    ("The school of {name} has {a} girls and {b} boys", "children"),
    ("{name} walks {a} steps to the well and {b} steps to the gate", "steps"),
    ("A train with {a} travelers stops for {name} and {b} more get on", "travelers"),
    ("{name} saves {a} coins in spring and {b} coins in winter", "coins"),
    ("On the roof {name} sees {a} gray birds and {b} black birds", "birds"),
    ("{name} lights {a} lamps in the palace and {b} lamps in the garden", "lamps"),
    ("The king sends {name} {a} horses and later {b} horses more", "horses"),
    ("{name} paints {a} doors blue and {b} doors green", "doors"),
    ("A storm takes {a} leaves from the tree of {name}, then {b} more", "leaves"),
    ("{name} writes {a} letters to a friend and {b} letters to a brother", "letters"),
    ("At the market {name} buys {a} eggs and then {b} eggs from a farmer", "eggs"),
    ("{name} builds a wall of {a} big stones and {b} small stones", "stones"),
    ("A fisherman called {name} catches {a} fish by day and {b} by moonlight", "fish"),
    ("{name} sews {a} buttons on a coat and {b} buttons on a dress", "buttons"),
    ("The museum shows {name} {a} old clocks and {b} new clocks", "clocks"),
    ("{name} climbs {a} stairs in the tower and {b} stairs in the castle", "stairs"),
    ("A robot helps {name} wash {a} plates and {b} cups", "dishes"),
    ("{name} hears the bell ring {a} times on the hill and {b} times below", "rings"),
    ("Two ladders lead {name} up: one has {a} steps, the other {b}", "steps"),
    ("{name} drives {a} miles north and then {b} miles home", "miles"),
    ("A beekeeper gives {name} {a} jars of honey, and a neighbor gives {b}", "jars"),
    ("{name} draws {a} maps of the island and {b} maps of the city", "maps"),
    ("For the feast {name} bakes {a} cakes and a cook bakes {b}", "cakes"),
    ("{name} throws {a} pebbles in the river and {b} pebbles in the lake", "pebbles"),
    ("The wind carries off {a} kites of {name} and {b} kites of a rival", "kites"),
    ("{name} knows {a} songs, and a grandmother teaches {b} songs more", "songs"),
    ("A caravan of {a} camels meets {name}, who leads {b} camels", "camels"),
    ("{name} opens {a} windows in the morning and {b} windows at noon", "windows"),
    ("In a dream {name} meets {a} dragons of fire and {b} dragons of ice", "dragons"),
    ("{name} sells {a} tickets for the dance and {b} tickets for the play", "tickets"),
    ("The farm of {name} has {a} ducks on the pond and {b} ducks in the yard", "ducks"),
    ("{name} ties {a} knots in one net and {b} knots in another", "knots"),
    ("A doctor named {name} visits {a} houses in town and {b} in the country", "houses"),
    ("{name} fills {a} bottles with rain and {b} bottles with milk", "bottles"),
    ("The army of {name} has {a} drums and {b} horns", "instruments"),
    ("{name} cuts {a} roses for a widow and {b} roses for a queen", "roses"),
    ("Under a bridge {name} finds {a} keys, and {b} keys under a stone", "keys"),
    ("{name} folds {a} paper boats at home and {b} paper boats at school", "boats"),
    ("A teacher asks {name} {a} questions on one day and {b} on the next", "questions"),
    ("{name} loads {a} sacks of wheat and {b} sacks of rice", "sacks"),
    ("The forest of {name} holds {a} tall pines and {b} young pines", "pines"),
    ("{name} polishes {a} spoons and {b} forks for the wedding", "pieces"),
    ("A circus brings {name} {a} red balloons and {b} yellow balloons", "balloons"),
    ("{name} prints {a} books before the war and {b} books after it", "books"),
    ("Snow falls for {a} days, and {name} waits {b} days more", "days"),
    ("{name} spots {a} boats at sea and {b} boats in the harbor", "boats"),
    ("A tailor gives {name} {a} silver pins and {b} gold pins", "pins"),
    ("{name} rows {a} strokes upstream and {b} strokes back", "strokes"),
    ("The puppet show of {name} draws {a} guests first and {b} guests later", "guests"),
    ("{name} pulls {a} carrots from the field and {b} from the garden", "carrots"),
    ("On an old map {name} marks {a} wells and then {b} more", "wells"),
    ("{name} lays {a} bricks while it is cool and {b} bricks in the sun", "bricks"),
    ("A pilot called {name} flies {a} hours over land and {b} hours over water", "hours"),
    ("{name} strings {a} glass beads and {b} wooden beads", "beads"),
    ("The gardener {name} waters {a} trees in the park and {b} by the road", "trees"),
    ("{name} feeds {a} hens and {b} geese on the farm", "animals"),
    ("A poet named {name} knows {a} words for snow and {b} words for love", "words"),
    ("{name} stacks {a} logs behind the house and {b} logs in the barn", "logs"),
    ("From the hill {name} sees {a} fires in the valley and {b} fires beyond", "fires"),
    ("{name} wins {a} points in one game and {b} points in the last", "points"),
    ("A violin maker called {name} owns {a} old strings and {b} new strings", "strings"),
    ("{name} weighs {a} pears for a stranger and {b} pears for a friend", "pears"),
    ("In the cellar {name} finds {a} candles, and in the kitchen {b}", "candles"),
    ("{name} photographs {a} clouds at sunrise and {b} clouds at sunset", "clouds"),
)


@lru_cache(maxsize=32)
def _operands(seed: int, length: int) -> Sequence[int]:
    """The first `length` pairs of the published stream, flat: lhs, rhs, lhs, rhs ..."""
    draw = random.Random(f"arithmetic:add-3digit:{seed}").randint
    return array("H", (draw(100, 999) for _ in range(2 * length)))


def _add3digit(seed: int, start: int, stop: int) -> list[Problem]:
    """The published prompt, byte for byte. Case i is the stream's i-th pair, repeats included."""
    pairs = _operands(seed, 1 << max(stop, 1024).bit_length())
    return [_addition(pairs[2 * i], pairs[2 * i + 1]) for i in range(start, stop)]


def _addition(lhs: int, rhs: int) -> Problem:
    ask = (
        f"What is {lhs} + {rhs}?\n\n"
        "End your reply with the answer inside answer tags, for example: <answer>0</answer>"
    )
    return Problem(ask, str(lhs + rhs), lhs, rhs)


@lru_cache(maxsize=1024)
def _order(task: str, seed: int, cycle: int, n: int) -> tuple[int, ...]:
    """A permutation of n themes: every cycle of n cases asks each of them once."""
    return tuple(random.Random(f"{task}:{seed}:cycle:{cycle}").sample(range(n), n))


def _theme(task: str, seed: int, index: int, n: int) -> int:
    return _order(task, seed, index // n, n)[index % n]


def _story(seed: int, start: int, stop: int) -> list[Problem]:
    return [_telling(seed, index) for index in range(start, stop)]


def _telling(seed: int, index: int) -> Problem:
    subject = STORY_SUBJECTS[_theme("story", seed, index, len(STORY_SUBJECTS))]
    ask = random.Random(f"story:{seed}:{index}").choice(STORY_ASKS)
    return Problem(ask.format(subject=subject), "")


def _story_sum(seed: int, start: int, stop: int) -> list[Problem]:
    return [_counting(seed, index) for index in range(start, stop)]


def _counting(seed: int, index: int) -> Problem:
    scene, things = SUM_SCENES[_theme("story_sum", seed, index, len(SUM_SCENES))]
    draw = random.Random(f"story_sum:{seed}:{index}")
    lhs, rhs = draw.randint(100, 999), draw.randint(100, 999)
    told = scene.format(name=draw.choice(NAMES), a=lhs, b=rhs)
    return Problem(
        f"{told}. {draw.choice(SUM_ASKS).format(things=things)}", str(lhs + rhs), lhs, rhs
    )


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            Task("add3digit", True, "assay-add3digit 0.1.0 (kar-ganap/assay)", _add3digit),
            Task("story", False, "hackbait-onset", _story),
            Task("story_sum", True, "hackbait-onset", _story_sum),
        )
    }
)
