import type { Entity } from '../domain/entity.ts';

/** One dated profile row. Texts are byte strings, escaped for COPY. */
export interface DatedRow {
  readonly entity: Entity;
  readonly key: string;
  /** When it was so, as `Instant` writes it; null: when the load was accepted. */
  readonly at: string | null;
  /** The inside of a JSON object. */
  readonly properties: string;
  /** null leaves the company as it is, '' removes it. */
  readonly company: string | null;
  /** As in `RowBuffer`. */
  readonly flags: number;
  readonly record: number;
}

/** Dated profile rows of a chunk, in file order, one per record: a repeated key stays several rows. */
export class DatedBuffer {
  readonly all: DatedRow[] = [];

  get rows(): number {
    return this.all.length;
  }

  reset(): void {
    this.all.length = 0;
  }

  add(
    entity: Entity,
    key: string,
    at: string | null,
    properties: string,
    company: string | null,
    flags: number,
    record: number,
  ): void {
    this.all.push({ entity, key, at, properties, company, flags, record });
  }
}
