import type { Instant } from '../domain/instant.ts';

/** A JSON object as `parseJsonText` gives it. */
export type Properties = Readonly<Record<string, unknown>>;

/** What all single records have in common. */
interface Record_ {
  readonly environmentId: number;
  /** Numbers inside may be marked (see ParsedJson). */
  readonly marked: boolean;
  /** Length of the body it came in. */
  readonly bytes: number;
}

/** A user to be laid over what is stored; a null property is removed. */
export interface UserRecord extends Record_ {
  readonly userId: string;
  /** null leaves the user's company as it is, '' removes it. */
  readonly companyId: string | null;
  readonly properties: Properties;
  /** Properties of that company. */
  readonly company: Properties;
}

export interface CompanyRecord extends Record_ {
  readonly companyId: string;
  readonly properties: Properties;
}

export interface EventRecord extends Record_ {
  /** The caller's, if there is one: the event is then added once. */
  readonly eventId: string | null;
  readonly eventName: string;
  readonly userId: string;
  /** null: the company the user belongs to. */
  readonly companyId: string | null;
  /** null: now. */
  readonly insertedAt: Instant | null;
  readonly metadata: Properties;
}
