import type { Preset } from '../../domain/load.ts';
import type { JsonObject } from '../json-object.ts';
import { readAmplitudeRecord } from './amplitude.ts';
import { readMixpanelRecord } from './mixpanel.ts';
import { readPosthogRecord } from './posthog.ts';
import type { PresetRecord } from './preset-record.ts';
import { readSegmentRecord } from './segment.ts';

/** Gives null for a record that is none of the product's, or none of those that are loaded. */
export type ReadPreset = (record: JsonObject) => PresetRecord | null;

/**
 * Presets: a decoded record of another product as records of ours, which are then read as those of any file. One file for each
 * product; they are pure, and judge no value: that is done by who reads ours.
 */
export const readPreset: Readonly<Record<Preset, ReadPreset>> = {
  mixpanel: readMixpanelRecord,
  amplitude: readAmplitudeRecord,
  segment: readSegmentRecord,
  posthog: readPosthogRecord,
};
