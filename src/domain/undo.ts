export interface UndoOfLoads {
  readonly loadId: number;
  readonly undoes: readonly number[];
  /** The only properties that it puts back; `null`: all, with companies, profiles and events. */
  readonly properties: readonly string[] | null;
}

/** The number of a load; `null`: a single record, a deletion or an operator. */
export type Author = number | null;

const isWhole = ({ properties }: UndoOfLoads): boolean => properties === null;

/**
 * Returns, by load, the latest undo of it that counts. An undo comes after what it undoes, and ceases to count itself once an undo of it
 * that `ends` it counts.
 */
export function undoneLoads(
  undos: readonly UndoOfLoads[],
  ends: (undo: UndoOfLoads) => boolean = isWhole,
): ReadonlyMap<number, number> {
  const undone = new Map<number, number>();
  const ended = new Set<number>();
  for (const undo of [...undos].sort((a, b) => b.loadId - a.loadId)) {
    if (ended.has(undo.loadId)) continue;
    for (const load of undo.undoes) {
      if (!undone.has(load)) undone.set(load, undo.loadId);
      if (ends(undo)) ended.add(load);
    }
  }
  return undone;
}

/**
 * Tells which loads count before and after an undo, property by property: a load does not while an undo of it counts that covers the
 * property. All of the profile that is not a property (`null`) is covered by undos of everything.
 */
export class CountingLoads {
  readonly #undos: readonly UndoOfLoads[];
  readonly #ids: ReadonlySet<number>;
  /** Loads that do not count, by what partial undos name; whatever they do not name is as `null`. */
  readonly #out = new Map<
    string | null,
    readonly [before: ReadonlySet<number>, after: ReadonlySet<number>]
  >();

  /** `undos`: all others of the environment that are whole. One that is not counts as a load. */
  constructor(undo: UndoOfLoads, undos: readonly UndoOfLoads[]) {
    this.#undos = undos;
    this.#ids = new Set(undos.map(({ loadId }) => loadId));
    const names = [undo, ...undos].flatMap(({ properties }) => properties ?? []);
    for (const name of new Set([null, ...names])) {
      const covers = ({ properties }: UndoOfLoads) =>
        properties === null || (name !== null && properties.includes(name));
      const out = (all: readonly UndoOfLoads[]) =>
        new Set(undoneLoads(all.filter(covers), () => true).keys());
      this.#out.set(name, [out(undos), out([undo, ...undos])]);
    }
  }

  /** Tells whether what the author changed counts after the undo. What undos changed does not: it follows from the loads. */
  counts(author: Author, name: string | null): boolean {
    return author === null || !(this.#ids.has(author) || this.#of(name)[1].has(author));
  }

  /** Tells whether the undo makes the load count, or no longer count. */
  turns(author: Author, name: string | null): boolean {
    if (author === null || this.#ids.has(author)) return false;
    const [before, after] = this.#of(name);
    return before.has(author) !== after.has(author);
  }

  #of(name: string | null) {
    return this.#out.get(this.#out.has(name) ? name : null) ?? [new Set<number>(), new Set<number>()];
  }

  /** The loads that turn as a whole: those that count afterwards, and those that no longer do. */
  get turned(): { readonly on: readonly number[]; readonly off: readonly number[] } {
    const [before, after] = this.#of(null);
    const on = [...before].filter((load) => this.turns(load, null));
    return { on, off: [...after].filter((load) => this.turns(load, null)) };
  }

  /** All loads that turn, if only for some properties. */
  get loads(): readonly number[] {
    const loads = new Set<number>();
    for (const [name, out] of this.#out) {
      for (const load of [...out[0], ...out[1]]) if (this.turns(load, name)) loads.add(load);
    }
    return [...loads];
  }

  /** The undo and all undos of the loads that turn cover everything: no load turns for some properties only. */
  get isWhole(): boolean {
    const { loads } = this;
    return [...this.#out.keys()].every((name) => loads.every((load) => this.turns(load, name)));
  }

  /** The loads that an undo undoes, as if it alone counted; those of undos that it undoes are among them. */
  rootsOf(undoes: readonly number[]): readonly number[] {
    return undoes.flatMap((id) => {
      const undo = this.#undos.find(({ loadId }) => loadId === id);
      return undo === undefined ? [id] : this.rootsOf(undo.undoes);
    });
  }
}
