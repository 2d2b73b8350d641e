"""Topics that a palace of notes and conversations is unlikely to hold; one that it does hold is not asked."""

from __future__ import annotations

TOPICS = (
    "harpsichord tuning", "saffron harvests", "lighthouse keepers", "falconry gauntlets", "glacier crevasses",
    "bagpipe reeds", "truffle hounds", "kiln glazing", "beekeeping smokers", "canal locks",
    "dressage saddles", "eel smoking", "fencing foils", "gargoyle restoration", "hammock weaving",
    "ikebana vases", "juggling torches", "kelp farming", "lacemaking bobbins", "meteorite hunting",
    "narrowboat varnish", "origami cranes", "penguin colonies", "quarry blasting", "raspberry canes",
    "sundial alignment", "thatched roofs", "ukulele strings", "volcano observatories", "walnut inlays",
    "xylophone mallets", "yurt felting", "zeppelin hangars", "abacus beads", "bonsai pruning",
    "cuckoo clocks", "didgeridoo lessons", "espalier pears", "fjord kayaking", "gondola oars",
    "heraldry shields", "icebreaker hulls", "jousting lances", "kimono silk", "lute frets",
    "mead fermentation", "nutcracker ballet", "oyster beds", "puppet theatres", "quilt batting",
    "rune carving", "scrimshaw ivory", "tapestry looms", "unicycle hockey", "violin rosin",
    "windmill sails", "yodelling contests", "zither repairs", "alpaca shearing", "barometer mercury",
    "caviar tins", "dulcimer hammers", "elderflower cordial", "fresco pigments", "gingerbread moulds",
    "hot air ballooning", "ibex tracking", "jade carving", "kite surfing", "lichen dyes",
    "marzipan roses", "nougat recipes", "obsidian blades", "parchment making", "quince jelly",
    "reindeer sledges", "snowshoe bindings", "topiary shears", "umbrella repairs", "vellum binding",
)  # fmt: skip
