/** The devices of this machine, and whether their driver answers. */
import { existsSync } from "node:fs";
import { readDevices } from "../../../gpu/devices/device_totals.js";
import { formatBytes } from "../../../model/base/numbers.js";
import type { DoctorCheckJson } from "../../../model/documents/doctor_document.js";
import { limited, wordsOf, works } from "./check.js";

/** Device files created by the driver or a container runtime. */
const SIGNS = ["/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia/version", "/dev/dxg"];

export async function deviceCheck(): Promise<DoctorCheckJson> {
  try {
    const { devices } = await readDevices();
    const names = devices.map(({ name, totalBytes }) => `${name} ${formatBytes(totalBytes)}`);
    return works("gpu", "NVIDIA driver", names.join(", "));
  } catch (error) {
    const { found, remedy } = wordsOf(error);
    if (!SIGNS.some((path) => existsSync(path))) {
      return works(
        "gpu",
        "NVIDIA driver",
        "no device on this machine; snapshots and logs can still be read",
      );
    }
    return limited("gpu", "NVIDIA driver", found, {
      effect: "gpu top, and device memory of processes in ps and top",
      remedy,
    });
  }
}
