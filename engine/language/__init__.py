"""The languages of receivers: gettext catalogues (`<language>.po` beside this module) as Words."""

from engine.language.catalogue import LANGUAGES, words_of

__all__ = ["LANGUAGES", "words_of"]
