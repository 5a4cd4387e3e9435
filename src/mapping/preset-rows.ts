import { EARLIEST_EVENT } from '../domain/limits.ts';
import type { Preset } from '../domain/load.ts';
import type { Reason } from '../domain/reject.ts';
import { readTime } from './json-event.ts';
import { dropEventKeys, type ProfileSink, readProfile } from './json-record.ts';
import type { ParsedJson } from './json-text.ts';
import type { PresetProfile } from './presets/preset-record.ts';
import { UNCOUNTED } from './row-buffer.ts';
import type { Rows } from './rows.ts';

/** Rows of what records of a product say of profiles besides; they wait until the record itself has become a row. */
export class PresetProfiles {
  readonly #rows: Rows;
  readonly #sink: ProfileSink;
  #held: Parameters<Rows['addProfile']>[] = [];

  constructor(rows: Rows) {
    this.#rows = rows;
    this.#sink = {
      types: rows.types,
      addProfile: (at, entity, key, properties, company, flags, record) => {
        this.#held.push([at, entity, key, properties, company, flags | UNCOUNTED, record]);
      },
    };
  }

  /** Reads those of one record; those of the record before are forgotten. */
  read(
    profiles: readonly PresetProfile[],
    parsed: ParsedJson,
    length: number,
    record: number,
  ): Reason | null {
    this.#held = [];
    for (const { record: given, fillsIn } of profiles) {
      const object = { ...given };
      const instant = readTime(object, this.#rows.times);
      if (instant !== null && 'code' in instant) return instant;
      const entity = object['event_type'] === 'identify_user' ? 'users' : 'companies';
      dropEventKeys(object, entity);
      const at = fillsIn ? mirrored(instant?.ms ?? EARLIEST_EVENT) : (instant?.text ?? null);
      const reason = readProfile(object, parsed, { entity, at, length, record, source: null }, this.#sink);
      if (reason !== null) return reason;
    }
    return null;
  }

  add(): void {
    for (const held of this.#held) this.#rows.addProfile(...held);
  }
}

/**
 * The time of properties that only fill in: before any that a record can have, so that all others win, whenever they come;
 * and the later the record, the earlier it is, so that of several such records the first wins.
 */
function mirrored(ms: number): string {
  return new Date(2 * EARLIEST_EVENT - ms - 1).toISOString().replace('Z', '000Z');
}

/** The reason for a record that is not of the product, or not of a kind that is loaded. */
export function notOfPreset(preset: Preset): Reason {
  const message = `preset=${preset} knows no such record`;
  return { code: 'unknown_event_type', message, column: null };
}
