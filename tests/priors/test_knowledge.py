"""Knowledge in words: what it says by index, how it is read, and every way it can be wrong."""

import json
import os

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_dags, is_acyclic
from dagpost.priors import as_knowledge
from tests.knowledge_sets import random_knowledge, violations

NAMES = ("erk", "akt", "pka", "pkc")


def test_constraints_by_index():
    known = dp.Knowledge(
        required=["erk -> akt", ("akt", "pka")],
        forbidden=[("erk", "pka")],
        tiers=[["erk"], ["akt", "pkc"]],
        max_parents=2,
        probabilities={"pkc -> akt": 0.9},
    ).bound(NAMES)
    allowed = np.ones((4, 4), dtype=bool) ^ np.eye(4, dtype=bool)
    allowed[0, 2] = False  # forbidden
    allowed[1, 0] = allowed[3, 0] = False  # against tiers
    allowed[2, 1] = allowed[2, 0] = False  # required edges lead the other way
    np.testing.assert_array_equal(known.allowed, allowed)
    np.testing.assert_array_equal(np.argwhere(known.required), [[0, 1], [1, 2]])
    assert known.max_parents == 2
    np.testing.assert_array_equal(np.argwhere(known.stated), [[3, 1]])
    assert known.log_odds[3, 1] == pytest.approx(np.log(9)) and known.log_odds.sum() == known.log_odds[3, 1]
    with pytest.raises(ValueError, match="read-only"):
        known.allowed[0, 0] = True


def test_roots_leaves_and_limits():
    known = dp.Knowledge(roots=["erk"], leaves="pkc", max_parents=3).bound(NAMES)
    assert not known.allowed[:, 0].any() and not known.allowed[3].any()
    assert known.allowed.sum() == 12 - 3 - 3 + 1  # pkc -> erk is counted by both
    assert known.max_parents is None  # nobody can have more than three


def test_allowed_graphs_are_those_without_violations():
    rng = np.random.default_rng(0)
    graphs = all_dags(4)
    for _ in range(50):
        knowledge = random_knowledge(rng, NAMES)
        honoured = knowledge.bound(NAMES).honoured_by(graphs)
        plain = [not violations(graph, NAMES, knowledge) for graph in graphs]
        np.testing.assert_array_equal(honoured, plain)
        assert honoured.any()


def test_repaired_graphs_honour_it():
    rng = np.random.default_rng(1)
    names = tuple("abcdefg")
    for _ in range(200):
        knowledge = random_knowledge(rng, names)
        repaired = knowledge.bound(names).repaired(rng.random((7, 7)) < 0.5, rng.normal(size=(7, 7)))
        assert is_acyclic(repaired) and not violations(repaired, names, knowledge)


def test_repair_keeps_what_is_strong():
    known = dp.Knowledge(required=["erk -> akt"], max_parents=2).bound(NAMES)
    graph = np.zeros((4, 4), dtype=bool)
    graph[[2, 3, 1], [1, 1, 2]] = True  # pka and pkc -> akt, akt -> pka: a cycle, and too many parents
    scores = np.zeros((4, 4))
    scores[0, 1], scores[2, 1], scores[3, 1], scores[1, 2] = -9.0, 2.0, 1.0, 3.0
    kept = np.argwhere(known.repaired(graph, scores))
    np.testing.assert_array_equal(kept, [[0, 1], [1, 2]])  # the required edge stays in spite of its score


def test_equal_knowledge_is_equal():
    one = dp.Knowledge(required=[("erk", "akt")], probabilities={"pka -> pkc": 0.3})
    two = dp.Knowledge(required=(["erk", "akt"],), probabilities=[["pka", "pkc", 0.3]])
    assert hash(one) == hash(two)
    assert one.bound(NAMES) == two.bound(NAMES) and hash(one.bound(NAMES)) == hash(two.bound(NAMES))
    assert one.resolved(NAMES) == two.resolved(NAMES)
    assert dp.Knowledge().bound(NAMES).allowed.sum() == 12


FILE = """
required = ["erk -> akt", ["a -> b", "pka"]]
forbidden = ["pka -> erk"]
tiers = [["erk"], ["akt", "pka"]]
roots = ["erk"]
leaves = []
max_parents = 2

[probabilities]
"akt -> pka" = 0.9
"""


def test_file(tmp_path):
    path = tmp_path / "knowledge.toml"
    path.write_text("\ufeff" + FILE.replace("\n", "\r\n"), encoding="utf-8")
    wanted = dp.Knowledge(
        required=["erk -> akt", ("a -> b", "pka")],
        forbidden=["pka -> erk"],
        tiers=[["erk"], ["akt", "pka"]],
        roots=["erk"],
        max_parents=2,
        probabilities={"akt -> pka": 0.9},
    )
    assert as_knowledge(path) == as_knowledge(str(path)) == wanted
    known = wanted.bound(("erk", "akt", "pka", "a -> b"))
    assert known.present == ((0, 1), (3, 2))


def test_probabilities_as_a_list(tmp_path):
    path = tmp_path / "knowledge.toml"
    path.write_text('probabilities = [["a -> b", "c", 0.25], ["a -> b -> c", 0.25], [["c", "d"], 0.5]]')
    known = as_knowledge(path).bound(("a -> b", "c", "d"))
    assert known.odds == ((0, 1, pytest.approx(np.log(1 / 3))), (1, 2, 0.0))


def test_plain_form_can_be_read_back():
    rng = np.random.default_rng(2)
    for _ in range(20):
        knowledge = random_knowledge(rng, NAMES).resolved(NAMES)
        plain = json.loads(json.dumps(knowledge.as_dict()))
        assert as_knowledge(plain) == knowledge
    assert dp.Knowledge().as_dict() == {}
    assert as_knowledge(None) is None


@pytest.mark.parametrize(
    "names, edge, pair",
    [
        (("a->b", "c"), "a->b -> c", (0, 1)),
        (("a -> b", "c"), "a -> b->c", (0, 1)),
        (("a", "-> b"), "a -> -> b", (0, 1)),
        (("->", "x"), "-> -> x", (0, 1)),
        ((" erk ", "akt"), "erk->akt", (0, 1)),
        (("µ", "β"), "μ -> β", (0, 1)),  # two code points for one sign
        (("=cmd()", "<script>"), "<script> -> =cmd()", (1, 0)),
        (("../x", "a'b\"c"), "../x -> a'b\"c", (0, 1)),
        (("1", "2"), (1, 2), (0, 1)),
    ],
)
def test_awkward_names(names, edge, pair):
    assert dp.Knowledge(required=[edge]).bound(names).present == (pair,)
    assert dp.Knowledge(probabilities=[[edge, 0.3]]).bound(names).odds[0][:2] == pair


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"required": ["erk -> atk"]}, "unknown name 'atk' in required: did you mean 'akt'"),
        ({"forbidden": [("zzz", "akt")]}, "unknown name 'zzz' in forbidden: known: 'erk', 'akt'"),
        ({"tiers": [["erkk"]]}, "unknown name 'erkk' in tiers: did you mean 'erk'"),
        ({"roots": ["pk"]}, "unknown name 'pk' in roots"),
        ({"leaves": ["Akt"]}, "unknown name 'Akt' in leaves: did you mean 'akt'"),
        ({"probabilities": {"erk -> x": 0.5}}, "unknown name 'x' in probabilities"),
        ({"required": ["erk -> erk"]}, "required: an edge cannot lead from 'erk' to itself"),
        ({"forbidden": ["erk -> erk"]}, "forbidden: an edge cannot lead from 'erk' to itself"),
        (
            {"required": ["erk -> akt"], "forbidden": [("erk", "akt")]},
            "'erk -> akt' is required, but it is also forbidden: drop one",
        ),
        (
            {"required": ["erk -> akt"], "tiers": [["akt"], ["erk"]]},
            "'erk -> akt' is required, but 'erk' is in tier 2, after 'akt' in tier 1",
        ),
        ({"required": ["erk -> akt"], "roots": ["akt"]}, "'erk -> akt' is required, but 'akt' is a root"),
        ({"required": ["erk -> akt"], "leaves": ["erk"]}, "'erk -> akt' is required, but 'erk' is a leaf"),
        ({"required": ["erk -> akt", "akt -> erk"]}, "cycle: (erk -> akt -> erk|akt -> erk -> akt): drop one"),
        ({"required": ["erk -> akt", "akt -> pka", "pka -> erk"]}, "cycle: .* -> .* -> .* -> "),
        (
            {"required": ["erk -> pkc", "akt -> pkc"], "max_parents": 1},
            r"'pkc' has 2 required parents \('erk', 'akt'\), more than max_parents=1",
        ),
        ({"tiers": [["erk"], ["akt", "erk"]]}, "'erk' is in tier 1 and again in tier 2"),
        ({"tiers": [["erk", "erk"]]}, "'erk' is in tier 1 and again in tier 1"),
        (
            {"required": ["erk -> akt"], "probabilities": {"erk -> akt": 0.9}},
            "'erk -> akt' has probability 0.9, but it is required",
        ),
        (
            {"forbidden": ["erk -> akt"], "probabilities": {"erk -> akt": 0.1}},
            "'erk -> akt' has probability 0.1, but it is also forbidden",
        ),
        ({"roots": ["akt"], "probabilities": {"erk -> akt": 0.1}}, "has probability 0.1, but 'akt' is a root"),
        (
            {"required": ["erk -> akt", "akt -> pka"], "probabilities": {"pka -> erk": 0.1}},
            "'pka -> erk' has probability 0.1, but the required edges lead from 'erk' to 'pka'",
        ),
        (
            {"probabilities": {"erk -> akt": 0.1, ("erk", "akt"): 0.2}},
            "'erk -> akt' has two probabilities, 0.1 and 0.2",
        ),
        ({"required": ["erk -> akt -> pka"]}, "'erk -> akt -> pka' holds more than one arrow"),
    ],
)
def test_contradictions_are_named(fields, message):
    with pytest.raises(InputError, match=message) as error:
        dp.Knowledge(**fields).bound(NAMES)
    assert "\n" not in str(error.value)


def test_an_edge_that_can_be_read_in_two_ways():
    names = ("a", "b -> c", "a -> b", "c")
    with pytest.raises(InputError, match=r"'a -> b -> c' can be read in two ways: write one edge as a pair"):
        dp.Knowledge(required=["a -> b -> c"]).bound(names)
    assert dp.Knowledge(required=[("a", "b -> c")]).bound(names).present == ((0, 1),)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"required": ("erk", "akt")}, "required: 'erk' is not an edge: write 'cause -> effect'"),
        ({"required": [("erk", "akt", "pka")]}, "is not an edge"),
        ({"required": [3]}, "3 is not an edge"),
        ({"required": [("erk", None)]}, "required: None is not the name of a column"),
        ({"required": 3}, "required=3: give a list"),
        ({"required": {"erk": "akt"}}, "required={'erk': 'akt'}: give a list"),
        ({"tiers": "erk"}, "tiers='erk': give a list of lists"),
        ({"tiers": [3]}, "tiers=3: give a list"),
        ({"roots": [True]}, "roots: True is not the name of a column"),
        ({"max_parents": -1}, "max_parents=-1: give a whole number, at least 0"),
        ({"max_parents": 1.5}, "max_parents=1.5"),
        ({"max_parents": True}, "max_parents=True"),
        ({"probabilities": {"erk -> akt": 0}}, "probability 0 of 'erk -> akt': give a number above 0 and below 1"),
        ({"probabilities": {("erk", "akt"): 1.0}}, "probability 1.0 of 'erk -> akt'"),
        ({"probabilities": {"erk -> akt": float("nan")}}, "probability nan"),
        ({"probabilities": {"erk -> akt": "0.3"}}, "probability '0.3'"),
        ({"probabilities": {"erk -> akt": {"p": 0.3}}}, "probability {'p': 0.3}"),
        ({"probabilities": [0.3]}, "0.3 is not an edge with a probability"),
        ({"probabilities": ["erk -> akt"]}, "'erk -> akt' is not an edge with a probability"),
        ({"probabilities": 0.3}, "probabilities=0.3: give a list"),
        ({"requierd": []}, "unknown key 'requierd' in knowledge: did you mean 'required'"),
    ],
)
def test_shapes_are_named(fields, message):
    with pytest.raises(InputError, match=message):
        as_knowledge(fields)


@pytest.mark.parametrize(
    "content, message",
    [
        (b'required = ["a -> b"', r"k\.toml is not TOML: Unclosed array"),
        (b"erk,akt\n1,2\n", r"k\.toml is not TOML: .*line 1"),
        (b"", r"k\.toml is empty"),
        (b"required = 3", r"k\.toml: required=3: give a list"),
        (b"tier = []", r"k\.toml: unknown key 'tier' in knowledge: did you mean 'tiers'"),
        (b"roots = ['\xe9']", r"k\.toml: line 1 is not UTF-8"),
        ("roots = ['a']".encode("utf-16"), r"k\.toml is UTF-16 text"),
        (b"[probabilities]\nerk.akt = 0.5", r"k\.toml: probabilities: 'erk' is not an edge"),
        (b"roots = []\nroots = []", r"k\.toml is not TOML"),
    ],
)
def test_bad_files_are_named(tmp_path, content, message):
    path = tmp_path / "k.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        as_knowledge(path)
    assert "\n" not in str(error.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError, match=r"gone\.toml: no such file"):
        as_knowledge(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="is a folder: give a knowledge file"):
        as_knowledge(tmp_path)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match=r"pipe\.toml is not a plain file"):
        as_knowledge(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match="must be a Knowledge, a dict or the path of a TOML file, got int"):
        as_knowledge(3)
