import { Distribution } from './distribution.ts';

const entities = ['users', 'companies', 'events'] as const;
export type RecordEntity = (typeof entities)[number];
/** `refused`: the caller must change it. `failed`: it may be sent again. */
export type RecordOutcome = 'accepted' | 'refused' | 'failed';

const recordBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const secondBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** The single records of one entity. */
export class EntityMetrics {
  readonly windowRecords = new Distribution(recordBounds);
  readonly windowSeconds = new Distribution(secondBounds);
  readonly ended: Record<RecordOutcome, number> = { accepted: 0, refused: 0, failed: 0 };
  waiting = 0;
}

/** What becomes of single records. */
export class IngestMetrics {
  readonly byEntity: Readonly<Record<RecordEntity, EntityMetrics>> = {
    users: new EntityMetrics(),
    companies: new EntityMetrics(),
    events: new EntityMetrics(),
  };

  /** A window of so many records was committed; `seconds`: from sending its statement to the commit. */
  windowCommitted(entity: RecordEntity, records: number, seconds: number): void {
    const { windowRecords, windowSeconds } = this.byEntity[entity];
    windowRecords.add(records);
    windowSeconds.add(seconds);
  }

  /** So many more (or fewer) records wait for a statement now. */
  windowWaiting(entity: RecordEntity, difference: number): void {
    this.byEntity[entity].waiting += difference;
  }

  recordsEnded(entity: RecordEntity, outcome: RecordOutcome, count: number): void {
    this.byEntity[entity].ended[outcome] += count;
  }
}
