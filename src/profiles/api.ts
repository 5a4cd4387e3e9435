import type { Static } from 'typebox';
import { jobFields } from '../http/job.ts';
import { anyObject, choice, defineRecord, envelope, object, orNull, text, time } from '../http/schema.ts';

const changeMakers = ['load', 'request', 'operator', 'deletion'] as const;
export type ChangeMaker = (typeof changeMakers)[number];

const whoDescription =
  '`load`: a job, which `job` names; `request`: a single record or a batch; `operator`: SQL from outside the service; `deletion`: a deletion job.';

const changingJob = orNull(
  object('The job. Null if no load did it, or if the job is no longer kept.', {
    job_id: jobFields.job_id,
    type: text('Type of the job, such as `import`.', 'import'),
    filename: jobFields.filename,
  }),
);

const changeTime = '2026-11-19T17:20:11.004211Z';

const profileChange = defineRecord('ProfileChange', 'A change of a profile.', {
  at: time('When the change was made.', changeTime),
  action: choice(['changed', 'removed'], 'What happened to the profile.', 'changed'),
  by: choice(changeMakers, `Who did it. ${whoDescription}`, 'load'),
  job: changingJob,
  before: orNull(
    object('The profile before the change. Null if its data was deleted since.', {
      metadata: anyObject('Properties, with the type and every digit as stored.', { plan: 'pro', logins: 7 }),
      company_id: orNull(text('Company of the user. Null if there was none, and for companies.', 'acme')),
    }),
  ),
});
export type ProfileChange = Static<typeof profileChange.schema>;

export const profileHistory = envelope('ProfileHistory', profileChange.ref, 'Changes, newest first.', {
  kept_since: orNull(time('Changes before this time are not kept. Null if none are (`CHANGES_DAYS`).')),
});
export type ProfileHistory = Static<typeof profileHistory.schema>;

const profileFields = {
  metadata: anyObject('Properties, with the type and every digit as stored.', {
    name: 'Ada Lovelace',
    plan: 'pro',
    logins: 7,
  }),
  first_seen_at: time(
    'When the profile was created, or the earliest time that a record of it gives.',
    '2026-11-01T08:00:00.000000Z',
  ),
  last_seen_at: time('When an identify call or a load last named it.', '2026-11-20T12:34:56.123456Z'),
  updated_at: time('When it last changed.', changeTime),
};

export const userProfile = defineRecord('UserProfile', 'A stored user.', {
  user_id: text('ID of the user, as sent.', 'u1'),
  company_id: orNull(text('Current company of the user. Null if there is none.', 'acme')),
  company_name: orNull(text('Property `name` of that company, as text. Null if it has none.', 'Acme Tools')),
  ...profileFields,
});
export type UserProfile = Static<typeof userProfile.schema>;

type FieldOfUsers = 'user_id' | 'company_name';
/** Profile of a user or a company. The fields that only users have are optional. */
export type Profile = Omit<UserProfile, FieldOfUsers> & Partial<Pick<UserProfile, FieldOfUsers>>;

export const companyProfile = defineRecord('CompanyProfile', 'A stored company.', {
  company_id: text('ID of the company, as sent.', 'acme'),
  ...profileFields,
});

export const userPage = envelope('UserPage', userProfile.ref, 'Users, sorted by ID.');

export const companyPage = envelope('CompanyPage', companyProfile.ref, 'Companies, sorted by ID.');

const exampleEventTime = '2026-11-20T12:34:56.123456Z';

const storedEvent = defineRecord('StoredEvent', 'A stored event.', {
  event_id: text('ID that the sender gave the event; otherwise one that the service made.', '5f0c6a4e'),
  event_type: text('Kind of event, such as `track`.', 'track'),
  event_name: text('Name of the event.', 'report_shared'),
  user_id: text('The user.', 'u1'),
  company_id: orNull(text('The company that the event is stored with. Null if there is none.', 'acme')),
  source: text('How the event came in.', 'backend-http'),
  inserted_at: time('When the event happened.', exampleEventTime),
  metadata: anyObject('Properties, with every digit as stored.', { report: 'Q3', pages: 12 }),
});
export type StoredEvent = Static<typeof storedEvent.schema>;

export const eventPageAnswer = envelope('EventPage', storedEvent.ref, 'Events, newest first.', {
  events_kept_from: orNull(
    time(
      'Retention may have removed events before this time, or moved them to the lake. Null if the range contains none of them.',
    ),
  ),
});
