"""The departments of the UK's major projects portfolio, 2020 to 2023: their short names, and how people write them out."""

from __future__ import annotations

DEPARTMENTS: dict[str, tuple[str, ...]] = {
    "BEIS": ("Department for Business, Energy and Industrial Strategy", "Business, Energy and Industrial Strategy"),
    "CO": ("Cabinet Office",),
    "DBT": ("Department for Business and Trade", "Business and Trade"),
    "DCMS": (
        "Department for Digital, Culture, Media and Sport",
        "Department for Culture, Media and Sport",
        "Culture, Media and Sport",
        "culture department",
    ),
    "DEFRA": (
        "Department for Environment, Food and Rural Affairs",
        "Department for the Environment, Food and Rural Affairs",
        "Environment, Food and Rural Affairs",
    ),
    "DESNZ": ("Department for Energy Security and Net Zero", "Energy Security and Net Zero"),
    "DFE": ("Department for Education", "Department of Education", "education department"),
    "DFID": ("Department for International Development", "International Development"),
    "DFT": ("Department for Transport", "Department of Transport", "transport department"),
    "DHSC": (
        "Department of Health and Social Care",
        "Department for Health and Social Care",
        "Department of Health",
        "Department for Health",
        "health department",
    ),
    "DLUHC": ("Department for Levelling Up, Housing and Communities", "Levelling Up, Housing and Communities"),
    "DSIT": ("Department for Science, Innovation and Technology", "Science, Innovation and Technology"),
    "DWP": ("Department for Work and Pensions", "Department of Work and Pensions", "Work and Pensions"),
    "FCDO": ("Foreign, Commonwealth and Development Office",),
    "FCO": ("Foreign and Commonwealth Office", "Foreign Office"),
    "HMLR": ("HM Land Registry", "Land Registry"),
    "HMRC": ("HM Revenue and Customs", "Her Majesty's Revenue and Customs", "His Majesty's Revenue and Customs"),
    "HMT": ("HM Treasury", "Treasury", "Her Majesty's Treasury", "His Majesty's Treasury"),
    "HO": ("Home Office",),
    "MHCLG": ("Ministry of Housing, Communities and Local Government", "housing ministry"),
    "MOD": ("Ministry of Defence", "Ministry of Defense", "defence ministry", "Department of Defence"),
    "MOJ": ("Ministry of Justice", "justice ministry", "Department of Justice"),
    "NCA": ("National Crime Agency",),
    "ONS": ("Office for National Statistics", "Office of National Statistics"),
    "VOA": ("Valuation Office Agency", "Valuation Office"),
}
"""Short name, and names in full. The short name is the one that the portfolio's rows have, in capitals."""

ONLY_IN_CAPITALS = frozenset({"CO", "HO"})
"""Short names that are ordinary words in small letters."""
