"""The shipped languages, as constants and mappings for tests."""

from neardup.core.languages import LANGUAGES, SHIPPED

HINDI, MALAYALAM, BENGALI, MARATHI, TAMIL, TELUGU, GUJARATI, ENGLISH, ODIA, PUNJABI, KANNADA, ASSAMESE, URDU = LANGUAGES
SAMPLED = LANGUAGES[:10]  # those with stories in neardup.samples
NAMES = dict(enumerate(LANGUAGES))  # by number, as in a new ledger
NUMBER_OF = {language: number for number, language in NAMES.items()}
CODES = SHIPPED.codes
TEXTS = {language: entry.golden for language, entry in SHIPPED.items()}
