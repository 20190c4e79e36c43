import type { Profile } from "../model/profile.js";
import type { Recording } from "./types.js";
export function peakProfile(recording: Recording): Profile {
  return recording.profileOf(0);
}
