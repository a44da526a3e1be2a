"""Networks of Hugging Face transformers: the architecture, weights and preprocessing that a checkpoint names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from assay.core.errors import AssayError, first_line, optional
from assay.core.reading import is_folder, read_json, reading
from assay.networks.imported.image_processor import ImageProcessor, image_processor

NEW_WEIGHTS = "allow_new_weights"
"""The argument that permits weights which the checkpoint does not hold."""
NO_CODE: dict[str, Any] = {"trust_remote_code": False}
"""Code that comes with a checkpoint is never run, whatever its configuration asks for."""
SAFE: dict[str, Any] = {"use_safetensors": True}
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


class Checkpoint(NamedTuple):
    """A network with the weights of a checkpoint, and the preprocessing that it asks for; None for none."""

    module: nn.Module
    preprocess: ImageProcessor | None


def load_hugging_face(name: str, args: Mapping[str, Any], preprocess: bool = True) -> Checkpoint:
    """Load the architecture that a checkpoint names, with its weights and its image processor.

    A checkpoint that names no architecture is loaded by ``AutoModel``. Weights that the checkpoint lacks, or has in
    another shape, would be random: they are an error, unless ``allow_new_weights`` is among the arguments.

    Args:
        name: A folder made by ``save_pretrained``, or the name of a checkpoint on the hub.
        args: Arguments of ``from_pretrained``, such as ``num_labels``; and ``allow_new_weights``.
        preprocess: Whether to read the image processor.
    """
    source = f"source='hf:{name}'"
    if name.startswith((".", "/", "~")) and not is_folder(name):
        raise AssayError(f"{source} cannot be loaded (no such folder): give one made by save_pretrained, or a name")
    transformers = optional("transformers", "hf", source)
    options = dict(args)
    _require_no_code(options, source)
    new_weights = options.pop(NEW_WEIGHTS, False)
    _require_safe_weights(name, options)
    with _quietly(transformers):
        try:
            config = transformers.AutoConfig.from_pretrained(name, **_about_the_place(options) | NO_CODE)
            network, loading = _class(transformers, config, source).from_pretrained(
                name, **{"ignore_mismatched_sizes": True} | options | NO_CODE | SAFE, output_loading_info=True
            )
            settings = _image_processor_settings(transformers, name, options) if preprocess else None
        except AssayError:
            raise
        except Exception as error:  # a folder, a file, a setting or the hub: transformers raises whatever it meets
            raise AssayError(f"{source} cannot be loaded ({first_line(error)})") from error
    new = _new_weights(loading)
    if new and not new_weights:
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        raise AssayError(
            f"{source} has no weights for {new[0]}{more} of {type(network).__name__}, which would be random: load a "
            f"checkpoint that has them, or give args={{{NEW_WEIGHTS}: true}}"
        )
    network.eval()
    return Checkpoint(network, None if settings is None else image_processor(settings, source))


def _require_no_code(options: Mapping[str, Any], source: str) -> None:
    """Refuse arguments that ask for code of a checkpoint to be run, or for a pickle to be opened."""
    if options.get("trust_remote_code"):
        raise AssayError(
            f"{source}: trust_remote_code would run code that comes with the checkpoint, which assay never does: give "
            "the 'package.module:factory' of a package that you trust and have installed"
        )
    if not options.get("use_safetensors", True) or options.get("weights_only", True) is not True:
        raise AssayError(f"{source}: weights are read from safetensors alone: leave out use_safetensors, weights_only")


def _require_safe_weights(name: str, options: Mapping[str, Any]) -> None:
    """Refuse a folder whose only weights are pickles, which opening could run."""
    folder = Path(name).expanduser() / str(options.get("subfolder", ""))
    if not is_folder(folder):
        return  # a name on the hub, of which only safetensors are asked for
    with reading(folder):
        names = sorted(path.name for path in folder.iterdir())
    pickles = [name for name in names if name.endswith(_PICKLES)]
    if pickles and not any(name.endswith(".safetensors") for name in names):
        raise AssayError(
            f"weights={folder / pickles[0]} is a pickle and was not loaded, because loading it could run code: save it "
            "as safetensors, by save_pretrained of a new version of transformers"
        )


def _class(transformers: Any, config: Any, source: str) -> Any:
    """The class of the architecture that a configuration names; ``AutoModel`` where it names none."""
    named = getattr(config, "architectures", None)
    if not named:
        return transformers.AutoModel
    architecture = getattr(transformers, named[0], None)
    if architecture is None:
        raise AssayError(
            f"{source} is a {named[0]}, which transformers {transformers.__version__} does not have: install a "
            "version that has it, or give the 'package.module:factory' that makes it"
        )
    return architecture


def _new_weights(loading: Mapping[str, Any]) -> list[str]:
    """Names of the weights that a checkpoint lacks, and those it has in another shape, with both shapes."""
    missing = sorted(map(repr, loading["missing_keys"]))
    mismatched = sorted(
        f"{key!r} (of shape {tuple(own)}, the checkpoint has {tuple(theirs)})"
        for key, theirs, own in loading["mismatched_keys"]
    )
    return missing + mismatched


def _about_the_place(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say where and which the checkpoint is, rather than how to load it."""
    places = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")
    return {key: options[key] for key in places if key in options}


def _image_processor_settings(transformers: Any, name: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the checkpoint says of its image processor; None where it has none."""
    # Read as a file: the class itself needs torchvision or Pillow, and processes one picture at a time.
    for file, key in (("preprocessor_config.json", None), ("processor_config.json", "image_processor")):
        path = transformers.utils.cached_file(
            name,
            file,
            **_about_the_place(options),
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        if path is None:
            continue
        settings = read_json(path, "restore it, or give preprocess")
        settings = settings if key is None or not isinstance(settings, dict) else settings.get(key)
        if not isinstance(settings, dict | None):
            raise AssayError(f"{path} holds no settings of an image processor: restore it, or give preprocess")
        # A processor of sounds or of text says nothing of pictures.
        if settings and any(word in settings for word in ("do_resize", "do_normalize", "do_rescale", "image_mean")):
            return dict(settings) if "feature_size" not in settings else None
    return None


@contextmanager
def _quietly(transformers: Any) -> Iterator[None]:
    """Silence the progress bar of loading, and the report on weights: what is wrong with them is an error here."""
    logging = transformers.utils.logging
    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()
