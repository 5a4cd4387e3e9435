import type { Static } from 'typebox';
import { actorKinds } from '../../domain/act.ts';
import {
  choice,
  defineRecord,
  envelope,
  object,
  ordinal,
  orNull,
  record,
  text,
  time,
} from '../../http/schema.ts';
import { entryOutcomes } from './store.ts';

const at = (description: string) => time(description, '2026-11-20T12:00:41.120Z');

export const entryRecord = defineRecord('AuditEntry', 'An act, or equal acts of one hour.', {
  id: text('ID of the entry. Later entries have higher ids.', '4711'),
  environment: orNull(text('Environment of the act. Null if it concerns the whole service.', 'default')),
  at: at('When it happened, or happened first.'),
  last_at: at('When it happened last.'),
  count: ordinal('Number of equal acts in the hour. Above 1 only for downloads and refused credentials.'),
  action: text('Noun and verb.', 'key.created'),
  outcome: choice(entryOutcomes, 'Result. Only refused credentials are `refused`.', 'done'),
  actor: object('Who did it, and from where.', {
    kind: choice(actorKinds, 'Kind of actor.', 'api_key'),
    name: orNull(text('Public ID of the key, or name of the person, account or source.', '0tzwkpc87gq5')),
    session_id: orNull(text('Session of the console.', 'q3Zt0bV1kXyA')),
    address: orNull(text('IP address of the request, its network, or host of the command.', '203.0.113.7')),
  }),
  thing: orNull(text('Public ID or name of what was changed.', '0tzwkpc87gq5')),
  details: record({
    description: 'Counts and choices.',
    additionalProperties: true,
    examples: [{ label: 'nightly' }],
  }),
});
export type AuditEntry = Static<typeof entryRecord.schema>;

export const entryPage = envelope('AuditPage', entryRecord.ref, 'Entries, newest first.', {});
export type AuditPage = Static<typeof entryPage.schema>;
