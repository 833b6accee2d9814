"""What the machine does meanwhile: power, clocks, temperature, memory, PCIe, processors. Sampled in a thread,
summarised as means and peaks.

NVIDIA parts are read through NVML, AMD's through rocm-smi, the host through psutil; what is not there is left
out. It is the machine on which the bench runs: for a server elsewhere it says nothing.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from mantile.library.errors import InputError

Sample = Mapping[str, Mapping[str, float]]
"""Figures by name in SI units, by device."""
Source = Callable[[], Sample]

INTERVAL = 0.5  # seconds
_TOOL_SECONDS = 10.0  # that rocm-smi may take
_PEAKS = ("memory_used_bytes", "temperature_c", "power_w")
_ROCM = {
    "power_w": (r"(Average|Current).*Power \(W\)", 1.0),
    "temperature_c": (r"Temperature \(Sensor (edge|junction)\) \(C\)", 1.0),
    "memory_used_bytes": (r"VRAM Total Used Memory \(B\)", 1.0),
    "busy_share": (r"GPU use \(%\)", 0.01),
    "clock_hz": (r"sclk clock speed", 1e6),
    "memory_clock_hz": (r"mclk clock speed", 1e6),
}
"""Figures of rocm-smi: what it calls them, and what takes its number to ours."""


class Telemetry:
    """Samples of the machine while something runs: `with Telemetry() as telemetry: ...`.

    Args:
        interval: seconds between two samples.

    Raises:
        InputError: if psutil is absent.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        """Find what can be read."""
        self.interval = interval
        self.sources: list[Source] = [_host(), *(source for source in (_nvml(), _rocm()) if source)]
        self._samples: dict[str, dict[str, list[float]]] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Telemetry:
        """Begin to sample, with nothing sampled yet."""
        self._samples, self._stop = {}, threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, with a last sample."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self._sample()
        while not self._stop.wait(self.interval):
            self._sample()
        self._sample()

    def _sample(self) -> None:
        for source in self.sources:
            for device, figures in source().items():
                of_device = self._samples.setdefault(device, {})
                for name, value in figures.items():
                    of_device.setdefault(name, []).append(value)

    def summary(self) -> dict[str, dict[str, float]]:
        """By device and figure: `_mean`, and `_max` where a peak says something; `samples` of each device."""
        found: dict[str, dict[str, float]] = {}
        for device, figures in self._samples.items():
            of_device: dict[str, float] = {"samples": max(map(len, figures.values()), default=0)}
            for name, values in figures.items():
                of_device[f"{name}_mean"] = sum(values) / len(values)
                if name in _PEAKS:
                    of_device[f"{name}_max"] = max(values)
            found[device] = of_device
        return found


def accelerator_names() -> tuple[str, ...]:
    """What NVML calls the accelerators of this machine; none where it is absent."""
    nvml = _nvml_module()
    if nvml is None:
        return ()
    return tuple(_text(nvml.nvmlDeviceGetName(handle)) for handle in _handles(nvml).values())


def driver_versions() -> dict[str, str]:
    """Releases of the driver and of CUDA, as NVML tells them: driver, cuda."""
    nvml = _nvml_module()
    if nvml is None or not _handles(nvml):
        return {}
    found: dict[str, str] = {}
    with suppress(nvml.NVMLError):
        found["driver"] = _text(nvml.nvmlSystemGetDriverVersion())
    with suppress(nvml.NVMLError):
        number = int(nvml.nvmlSystemGetCudaDriverVersion())
        found["cuda"] = f"{number // 1000}.{number % 1000 // 10}"
    return found


def _host() -> Source:
    try:
        import psutil
    except ImportError as error:
        raise InputError("--telemetry needs the package psutil: pip install 'mantile[bench]'") from error
    psutil.cpu_percent()  # the first look has nothing to compare with

    def sample() -> Sample:
        memory = psutil.virtual_memory()
        figures = {
            "busy_share": psutil.cpu_percent() / 100,
            "memory_used_bytes": float(memory.total - memory.available),
        }
        clock = None
        with suppress(OSError, NotImplementedError, AttributeError):
            clock = psutil.cpu_freq()
        if clock is not None and clock.current:
            figures["clock_hz"] = clock.current * 1e6
        return {"host": figures}

    return sample


def _nvml_module() -> Any:
    """NVML, ready; None where there is no driver or no package."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _handles(nvml: Any) -> dict[int, Any]:
    """The accelerators that answer, by their number; one that was lost, or may not be seen, is left out."""
    found: dict[int, Any] = {}
    with suppress(nvml.NVMLError):
        for place in range(nvml.nvmlDeviceGetCount()):
            with suppress(nvml.NVMLError):
                found[place] = nvml.nvmlDeviceGetHandleByIndex(place)
    return found


def _nvml() -> Source | None:
    nvml = _nvml_module()
    if nvml is None or not (handles := _handles(nvml)):
        return None
    reads: dict[str, Callable[[Any], float]] = {
        "power_w": lambda handle: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "temperature_c": lambda handle: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "memory_used_bytes": lambda handle: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "busy_share": lambda handle: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        "clock_hz": lambda handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6,
        "memory_clock_hz": lambda handle: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM) * 1e6,
        "pcie_received_bytes_per_s": lambda handle: (
            nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_RX_BYTES) * 1e3
        ),
        "pcie_sent_bytes_per_s": lambda handle: (
            nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_TX_BYTES) * 1e3
        ),
        "pcie_generation": lambda handle: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_lanes": lambda handle: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
    }

    def sample() -> Sample:
        found: dict[str, dict[str, float]] = {}
        for place, handle in handles.items():
            figures: dict[str, float] = {}
            for name, read in reads.items():
                with suppress(nvml.NVMLError):  # not every part has every figure
                    figures[name] = float(read(handle))
            found[f"gpu{place}"] = figures
        return found

    return sample


def _rocm() -> Source | None:
    tool = shutil.which("rocm-smi")
    if tool is None:
        return None
    shown = ("--showpower", "--showtemp", "--showmeminfo", "vram", "--showuse", "--showclocks", "--json")

    def sample() -> Sample:
        try:
            ran = subprocess.run(
                [tool, *shown], capture_output=True, text=True, timeout=_TOOL_SECONDS, check=True
            )
            cards = json.loads(ran.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            return {}
        return {
            f"gpu{place}": figures
            for place, card in enumerate(sorted(name for name in cards if name.startswith("card")))
            if (figures := _rocm_figures(cards[card]))
        }

    return sample


def _rocm_figures(card: Mapping[str, Any]) -> dict[str, float]:
    """Figures of a card as rocm-smi prints them, such as {"GPU use (%)": "98"}."""
    found: dict[str, float] = {}
    for name, (pattern, scale) in _ROCM.items():
        for key, value in card.items():
            number = re.search(r"\d+(\.\d+)?", str(value))
            if re.match(pattern, key) and number:
                found.setdefault(name, float(number[0]) * scale)
    return found


def _text(name: Any) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
