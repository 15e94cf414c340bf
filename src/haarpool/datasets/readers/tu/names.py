"""The names of the TU collection, so that a misspelled name is an error without any download."""

_ASSAYS = ("AhR", "AR", "AR-LBD", "ARE", "aromatase", "ATAD5", "ER", "ER-LBD", "HSE", "MMP", "p53")
_SCREENS = ("MCF-7", "MOLT-4", "NCI-H23", "OVCAR-8", "P388", "PC-3", "SF-295", "SN12C", "SW-620")
_TEMPORAL = ("dblp", "facebook", "highschool", "infectious", "mit", "tumblr")

TU_NAMES: tuple[str, ...] = (
    # molecules
    *("AIDS", "alchemy_full", "aspirin", "benzene", "BZR", "BZR_MD", "COX2", "COX2_MD", "DHFR"),
    *("DHFR_MD", "ER_MD", "ethanol", "FRANKENSTEIN", "malonaldehyde", "Mutagenicity", "MUTAG"),
    *("naphthalene", "NCI1", "NCI109", "PTC_FM", "PTC_FR", "PTC_MM", "PTC_MR", "QM9"),
    *("salicylic_acid", "toluene", "uracil", "ZINC_full", "ZINC_test", "ZINC_train", "ZINC_val"),
    *(f"{name}{h}" for name in (*_SCREENS, "UACC257", "Yeast") for h in ("", "H")),
    *(
        f"Tox21_{assay}_{part}"
        for assay in (*_ASSAYS, "PPAR-gamma")
        for part in ("training", "testing", "evaluation")
    ),
    # biology
    *("DD", "ENZYMES", "KKI", "OHSU", "Peking_1", "PROTEINS", "PROTEINS_full"),
    # images
    *("COIL-DEL", "COIL-RAG", "Cuneiform", "Fingerprint", "FIRSTMM_DB", "Letter-high"),
    *("Letter-low", "Letter-med", "MSRC_9", "MSRC_21", "MSRC_21C"),
    # social networks
    *("COLLAB", "DBLP_v1", "deezer_ego_nets", "github_stargazers", "IMDB-BINARY", "IMDB-MULTI"),
    *("REDDIT-BINARY", "REDDIT-MULTI-5K", "REDDIT-MULTI-12K", "reddit_threads", "twitch_egos"),
    *(f"{name}_ct{i}" for name in _TEMPORAL for i in (1, 2)),
    "TWITTER-Real-Graph-Partial",
    # synthetic
    *("COLORS-3", "SYNTHETIC", "SYNTHETICnew", "Synthie"),
)
ALIASES = {"mutagen": "Mutagenicity"}
