import { type Static, Type } from 'typebox';
import { MAX_REPORT_ROWS } from '../domain/limits.ts';
import { count, defineRecord, flag, items, object, text } from './schema.ts';

const events = count('Number of events.', 120);
const event_name = text('Name of the event.', 'report_shared');

export const report = defineRecord(
  'Report',
  'What is stored, to be compared with what another product counts.',
  {
    events: count('Number of events in the range.', 4800),
    is_complete: flag(`True if all days and names are listed; at most ${MAX_REPORT_ROWS} of each are.`),
    event_names: items('Names of events, most frequent first.', { event_name, events }),
    days: items('Events by day and name, oldest first.', {
      day: Type.String({ format: 'date', description: 'The day (UTC).' }),
      event_name,
      events,
    }),
    users: object('Users.', {
      profiles: count('Number of profiles of users, whenever they changed.', 1500),
      with_company: count('Number of these that have a company.', 1200),
      without_company: count('Number of these that have none.', 300),
      with_events: count('Number of users with events in the range.', 1600),
      without_profile: count(
        'Number of these that have no profile: mostly anonymous IDs that were never joined to a user.',
        100,
      ),
    }),
    companies: count('Number of profiles of companies.', 200),
  },
);
export type Report = Static<typeof report.schema>;
