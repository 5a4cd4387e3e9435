import { TransientError } from '../base/errors.ts';
import { uuidv7 } from '../base/uuid.ts';
import { type DataType, dataTypeOf, widen } from '../domain/data-type.ts';
import type { Entity, PropertyEntity } from '../domain/entity.ts';
import { markedNumber, writeJson } from '../formats/json-text.ts';
import type { KnownProperties } from '../lookups/known-properties.ts';
import type { Database } from '../postgres/database.ts';
import { isMissingPartition } from '../postgres/sqlstate.ts';
import { EventPartitions, type EventRow, writeEvents } from './event-store.ts';
import { type ProfileRow, type UserRow, writeCompanies, writeUsers } from './profile-store.ts';
import type {
  CompanyRecord,
  EventRecord,
  IngestContext,
  Properties,
  RecordWriter,
  UserRecord,
} from './records.ts';

export function profileWriter({
  knownProperties,
  db,
}: IngestContext): RecordWriter<UserRecord | CompanyRecord, ProfileRows> {
  return {
    async prepare(records) {
      const newProperties = new NewProperties(knownProperties);
      const rows = profileRows(records, newProperties);
      await newProperties.note(db);
      return rows;
    },
    async write(connection, { users, named, companies }, guard) {
      if (users.length > 0) await writeUsers(connection, users, named, guard);
      if (companies.length > 0) await writeCompanies(connection, companies, guard);
    },
  };
}

/** Each key occurs once. */
export interface ProfileRows {
  readonly users: readonly UserRow[];
  /** Companies without a record. Only users refer to them. */
  readonly named: readonly ProfileRow[];
  /** Companies with a record, which also sets when they were last seen. */
  readonly companies: readonly ProfileRow[];
}

export function isEmpty({ users, companies }: ProfileRows): boolean {
  return users.length + companies.length === 0;
}

/** Records of one key, merged in order of arrival. */
interface Draft {
  readonly environmentId: number;
  readonly key: string;
  properties: Properties;
  marked: boolean;
  companyId: string | null;
  /** False for a company to which only users refer. */
  isOwn: boolean;
}

function profileRows(
  records: readonly (UserRecord | CompanyRecord)[],
  newProperties: NewProperties,
): ProfileRows {
  const users = new Drafts();
  const companies = new Drafts();
  for (const record of records) {
    const { environmentId, companyId, properties, marked } = record;
    if (!('userId' in record)) {
      companies.put(environmentId, record.companyId, properties, marked, true);
      continue;
    }
    users.put(environmentId, record.userId, properties, marked, true, companyId);
    if (companyId !== null && companyId !== '')
      companies.put(environmentId, companyId, record.company, marked, false);
  }
  return {
    users: users.rows('users', newProperties, true),
    named: companies.rows('companies', newProperties, false),
    companies: companies.rows('companies', newProperties, true),
  };
}

class Drafts {
  readonly #byKey = new Map<string, Draft>();

  put(
    environmentId: number,
    key: string,
    properties: Properties,
    marked: boolean,
    isOwn: boolean,
    companyId: string | null = null,
  ): void {
    const name = `${environmentId} ${key}`;
    const draft = this.#byKey.get(name);
    if (draft === undefined) {
      this.#byKey.set(name, { environmentId, key, properties, marked, companyId, isOwn });
      return;
    }
    draft.properties = { ...draft.properties, ...properties };
    draft.marked ||= marked;
    draft.companyId = companyId ?? draft.companyId;
    draft.isOwn ||= isOwn;
  }

  rows(entity: Entity, newProperties: NewProperties, isOwn: boolean): UserRow[] {
    const rows: UserRow[] = [];
    for (const draft of this.#byKey.values()) {
      if (draft.isOwn !== isOwn) continue;
      const { environmentId, key, companyId, properties, marked } = draft;
      rows.push({
        environmentId,
        key,
        companyId,
        removes: newProperties.collect(environmentId, entity, properties) || companyId === '',
        properties: writeJson(properties, marked),
      });
    }
    return rows;
  }
}

class NewProperties {
  readonly #knownProperties: KnownProperties;
  readonly #found = new Map<string, Found>();

  constructor(knownProperties: KnownProperties) {
    this.#knownProperties = knownProperties;
  }

  /** Returns true if any property is null. */
  collect(environmentId: number, entity: PropertyEntity, properties: Properties): boolean {
    let removes = false;
    for (const name in properties) {
      const value = properties[name];
      if (value === null) {
        removes = true;
        continue;
      }
      const type = markedNumber(value) === null ? dataTypeOf(value) : 'numeric';
      if (type === null || this.#knownProperties.knows(environmentId, entity, name, type)) continue;
      this.#add(environmentId, entity, name, type);
    }
    return removes;
  }

  /** Called before the commit of the records, so that the list of properties is always complete. */
  async note(db: Database): Promise<void> {
    for (const { environmentId, entity, types } of this.#found.values()) {
      await this.#knownProperties.learn(db, environmentId, entity, types);
    }
  }

  #add(environmentId: number, entity: PropertyEntity, name: string, type: DataType): void {
    const key = `${environmentId} ${entity}`;
    const noted = this.#found.get(key) ?? { environmentId, entity, types: new Map() };
    this.#found.set(key, noted);
    const knownType = noted.types.get(name);
    noted.types.set(name, knownType === undefined ? type : widen(knownType, type));
  }
}

interface Found {
  readonly environmentId: number;
  readonly entity: PropertyEntity;
  readonly types: Map<string, DataType>;
}

export function eventWriter(context: IngestContext): RecordWriter<EventRecord, readonly EventRow[]> {
  const partitions = new EventPartitions();
  return {
    async prepare(records) {
      const instants = records.flatMap(({ insertedAt }) => (insertedAt === null ? [] : [insertedAt.ms]));
      await partitions.ensure(context.pool, instants);
      await learn(context, records);
      return records.map(eventRow);
    },
    async write(connection, rows, guard) {
      try {
        await writeEvents(connection, rows, guard);
      } catch (error) {
        if (!isMissingPartition(error)) throw error;
        // Retention has dropped a partition that this process had created or seen.
        partitions.forget();
        if (connection !== context.pool) {
          throw new TransientError('a partition of the events is gone', { cause: error });
        }
        await partitions.ensure(
          context.pool,
          rows.flatMap(({ insertedAt }) => (insertedAt === null ? [] : [Date.parse(insertedAt)])),
        );
        await writeEvents(connection, rows, guard);
      }
    },
  };
}

async function learn({ knownProperties, db }: IngestContext, records: readonly EventRecord[]): Promise<void> {
  const names = new Map<number, Map<string, null>>();
  const newProperties = new NewProperties(knownProperties);
  for (const { environmentId, eventName, metadata } of records) {
    newProperties.collect(environmentId, 'events', metadata);
    if (knownProperties.knows(environmentId, 'event_names', eventName, null)) continue;
    const unknownNames = names.get(environmentId) ?? new Map<string, null>();
    names.set(environmentId, unknownNames.set(eventName, null));
  }
  for (const [environmentId, unknownNames] of names)
    await knownProperties.learn(db, environmentId, 'event_names', unknownNames);
  await newProperties.note(db);
}

function eventRow(record: EventRecord): EventRow {
  const { environmentId, eventName, userId, companyId } = record;
  return {
    environmentId,
    eventId: record.eventId ?? uuidv7(),
    once: record.eventId !== null,
    eventName,
    isPageView: record.isPageView === true,
    userId,
    companyId,
    insertedAt: record.insertedAt?.text ?? null,
    metadata: writeJson(record.metadata, record.marked),
  };
}
