import type { Actor } from '../actors/actor.ts';
import type { Inflicted } from '../faults/inflict.ts';
import type { Site } from '../site/site.ts';

export interface Scene {
  readonly site: Site;
  readonly actors: readonly Actor[];
  readonly faults: readonly Inflicted[];
}

/** Something that must be so when the soak is over. */
export interface Invariant {
  readonly name: string;
  /** Looks; sentences that say what is not so. */
  look(scene: Scene): Promise<readonly string[]>;
}

/** One that a statement decides: its rows are what is wrong, each with a text `what`. */
export function noRows(name: string, statement: string): Invariant {
  return {
    name,
    look: async ({ site }) => {
      const rows = await site.sql<{ what: string }>(`select what from (${statement}) found limit 20`);
      return rows.map(({ what }) => what);
    },
  };
}
