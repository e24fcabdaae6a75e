"""The words of a command line as groups."""

from hypothesis import given
from hypothesis import strategies as st

from unordinal.cli.words import Words, split


def test_words_are_grouped_by_the_options_before_them() -> None:
    words = split(["train", "arm", "--data", "book.txt", "--resume", "--sizes", "1", "2", "-h"])
    assert words.plain == ("train", "arm")
    assert words.groups == (("--data", ("book.txt",)), ("--resume", ()), ("--sizes", ("1", "2")), ("-h", ()))
    assert words.all_plain == ("train", "arm", "book.txt", "1", "2")


def test_a_value_may_follow_an_equals_sign_and_look_like_anything() -> None:
    words = split(["--data=a=b.txt", "--text=--lr", "--out=", "--lr", "-1", "--k=-3"])
    assert words.groups == (
        ("--data", ("a=b.txt",)),
        ("--text", ("--lr",)),
        ("--out", ("",)),
        ("--lr", ("-1",)),
        ("--k", ("-3",)),
    )


def test_underscores_are_dashes_in_names_but_not_in_values() -> None:
    assert split(["--batch_size=a_b", "c_d"]).groups == (("--batch-size", ("a_b", "c_d")),)


def test_what_does_not_begin_like_an_option_is_none() -> None:
    for word in ("-1", "-1e-3", "-", "--", "---", "", "-x", "--1", "a--b", "-hello", "é"):
        assert split([word]) == Words((word,), ())
    for word in ("-h", "-V", "--a", "--A"):
        assert split([word]) == Words((), ((word, ()),))


def test_options_are_asked_for_by_any_of_their_names() -> None:
    words = split(["--out", "a", "--debug", "--out", "b", "--empty"])
    assert words.value("--out") == "a"
    assert words.value("--nothing", "--out") == "a"
    assert words.value("--debug", "--empty", "--nothing") is None
    assert words.has("--debug")
    assert words.has("--nothing", "--empty")
    assert not words.has("--nothing")


def test_some_words_can_be_left_out() -> None:
    words = split(["train", "arm", "--debug", "--out", "a", "--out", "b"])
    assert words.without(1) == split(["arm", "--debug", "--out", "a", "--out", "b"])
    assert words.without(0, "--debug") == split(["train", "arm", "--out", "a", "--out", "b"])
    assert words.without(2, "--debug", "--out") == Words((), ())


@given(st.lists(st.one_of(st.text(max_size=5), st.sampled_from(["--a", "--b-c", "-h", "-1", "--", "x"]))))
def test_no_word_is_lost_or_moved(argv: list[str]) -> None:
    argv = [word for word in argv if "=" not in word and "_" not in word]
    words = split(argv)
    assert [*words.plain, *(word for name, rest in words.groups for word in (name, *rest))] == argv
