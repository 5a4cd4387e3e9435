import { randomFillSync } from 'node:crypto';
import { V7Generator } from 'uuidv7';
import { TransientError } from '../domain/errors.ts';
import { writeJson } from '../mapping/json-text.ts';
import { isMissingPartition } from '../postgres/sqlstate.ts';
import { EventPartitions, type EventRow, writeEvents } from '../postgres/stores/events.ts';
import type { EventRecord, IngestContext, RecordWriter } from './records.ts';
import { NewProperties } from './write-profiles.ts';

export function eventWriter(context: IngestContext): RecordWriter<EventRecord, readonly EventRow[]> {
  const partitions = new EventPartitions();
  return {
    async prepare(records) {
      const instants = records.flatMap(({ insertedAt }) => (insertedAt === null ? [] : [insertedAt.ms]));
      await partitions.ensure(context.pool, instants);
      await learn(context, records);
      return records.map(eventRow);
    },
    async write(connection, rows) {
      try {
        await writeEvents(connection, rows);
      } catch (error) {
        if (!isMissingPartition(error)) throw error;
        // Its month was there, and has outlived its retention. Nothing was written.
        partitions.forget();
        if (connection !== context.pool) {
          throw new TransientError('a partition of the events is gone', { cause: error });
        }
        await partitions.ensure(context.pool, rows.flatMap(instantOf));
        await writeEvents(connection, rows);
      }
    },
  };
}

async function learn({ knownProperties, db }: IngestContext, records: readonly EventRecord[]): Promise<void> {
  const names = new Map<number, Map<string, null>>();
  const found = new NewProperties(knownProperties);
  for (const { environmentId, eventName, metadata } of records) {
    found.look(environmentId, 'events', metadata);
    if (knownProperties.knows(environmentId, 'event_names', eventName, null)) continue;
    const unknown = names.get(environmentId) ?? new Map<string, null>();
    names.set(environmentId, unknown.set(eventName, null));
  }
  for (const [environmentId, unknown] of names)
    await knownProperties.learn(db, environmentId, 'event_names', unknown);
  await found.note(db);
}

function instantOf({ insertedAt }: EventRow): number[] {
  return insertedAt === null ? [] : [Date.parse(insertedAt)];
}

function eventRow(record: EventRecord): EventRow {
  const { environmentId, eventName, userId, companyId } = record;
  return {
    environmentId,
    eventId: record.eventId ?? newEventId(),
    once: record.eventId !== null,
    eventName,
    userId,
    companyId,
    insertedAt: record.insertedAt?.text ?? null,
    metadata: writeJson(record.metadata, record.marked),
  };
}

const randomNumbers = new Uint32Array(1_024);
let randomLeft = 0;

/** The package's own source of random numbers asks the system for eight at a time, which takes most of its time. */
const eventIds = new V7Generator({
  nextUint32() {
    if (randomLeft === 0) {
      randomFillSync(randomNumbers);
      randomLeft = randomNumbers.length;
    }
    return randomNumbers[--randomLeft] as number;
  },
});

/** UUIDs of version 7, each greater than the one before it. */
function newEventId(): string {
  return eventIds.generate().toString();
}
