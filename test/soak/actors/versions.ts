import type { Batch } from './batch.ts';

/** Every content that an item of a source, such as a file, has ever had, by the names that the ledger has for them. */
export class Versions {
  readonly #batches = new Map<string, Batch>();
  readonly #latest = new Map<string, { readonly version: string; readonly since: number }>();

  /** Call it before the content can be seen. */
  add(item: string, version: string, batch: Batch): void {
    this.#batches.set(`${item} ${version}`, batch);
    this.#latest.set(item, { version, since: Number.POSITIVE_INFINITY });
  }

  /** Call it when it can. */
  stands(item: string): void {
    const latest = this.#latest.get(item);
    if (latest !== undefined) this.#latest.set(item, { ...latest, since: Date.now() });
  }

  get size(): number {
    return this.#batches.size;
  }

  find(item: string, version: string): Batch | undefined {
    return this.#batches.get(`${item} ${version}`);
  }

  /** What has been there since before the moment, in ms since 1970, as `item version`. */
  standingSince(moment: number): readonly string[] {
    return [...this.#latest].flatMap(([item, { version, since }]) =>
      since < moment ? [`${item} ${version}`] : [],
    );
  }
}
