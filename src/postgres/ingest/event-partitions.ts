import type pg from 'pg';

/** The next month's partition is there this long before it is needed. */
const aheadMs = 3 * 24 * 60 * 60 * 1000;

/** Makes the months of `sluice.events` as they are needed; remembers those that are there. */
export class EventPartitions {
  readonly #known = new Set<number>();

  /** Returns when the months of these instants (milliseconds since 1970), of now and of the days to come have a partition. */
  async ensure(connection: pg.Pool | pg.PoolClient, instants: readonly number[]): Promise<void> {
    const now = Date.now();
    let missing: Map<number, number> | null = null;
    for (const instant of [now, now + aheadMs, ...instants]) {
      const month = monthOf(instant);
      if (this.#known.has(month)) continue;
      missing ??= new Map();
      missing.set(month, instant);
    }
    if (missing === null) return;
    for (const [month, instant] of missing) {
      await connection.query('select sluice.ensure_events_partition(to_timestamp($1))', [instant / 1000]);
      this.#known.add(month);
    }
  }

  /** After a partition turned out to be gone. */
  forget(): void {
    this.#known.clear();
  }
}

function monthOf(instant: number): number {
  const date = new Date(instant);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}
