import { type Static, Type } from 'typebox';
import { worded } from '../base/validation.ts';
import { keyScopes } from '../domain/caller.ts';
import { exportLayouts } from '../domain/export.ts';
import { choice, defineRecord, flag, listOf, orNull, text, texts, time } from '../http/schema.ts';

const exampleTime = '2026-11-20T12:00:41.120Z';

export const environmentRecord = defineRecord('Environment', 'A tenant.', {
  name: text('Name of the environment.', 'default'),
  app_token: text('Public token of the environment.', 'NX-1A2B3C4D'),
  allowed_origins: texts('Origins of the pages that may send records.', ['https://app.example.com']),
  export_layout: choice(exportLayouts, 'Layout of exports that name none.'),
});
export type Environment = Static<typeof environmentRecord.schema>;

export const environmentName = (description: string) =>
  worded(
    Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,62}$', description, examples: ['staging'] }),
    'The name of an environment has 1 to 63 of a-z, 0-9, _ and -',
  );

const allowed = listOf('What the key may do.', Type.Enum([...keyScopes], { type: 'string' }));

const keyFields = {
  key_id: text('Public ID of the key. It appears in lists and logs.', '0tzwkpc87gq5'),
  label: text('Label of the key.', 'nightly import'),
  scopes: allowed,
  status: choice(['live', 'expired', 'revoked'], 'Status of the key.'),
  created_at: time('When the key was created.', exampleTime),
  expires_at: orNull(time('When the key expires. Null if it never does.'), null),
  revoked_at: orNull(time('When the key was revoked. Null if it was not.'), null),
  last_used_at: orNull(time('When the key was last used, to the minute. Null if never.', exampleTime)),
};

export const apiKey = defineRecord('ApiKey', 'An API key, without the key itself.', keyFields);
export type ApiKey = Static<typeof apiKey.schema>;

export const issuedKey = defineRecord('IssuedKey', 'A new API key.', {
  ...keyFields,
  key: text('The key. It is shown only once.', 'slk_…'),
});

export const callerRecord = defineRecord('CallerRecord', 'The caller of a request.', {
  environment: text('The environment that the caller works in.', 'default'),
  environments: texts('The environments that the caller may work in.', ['default']),
  scopes: allowed,
  key_id: text('ID of the key; `API_KEY` or `ADMIN_KEY` for the keys of the configuration.', '0tzwkpc87gq5'),
  is_admin: flag('True for a session that began with ADMIN_KEY or with a link from the command line.'),
  holder: orNull(
    text('How the session began, such as `key` or `link`. Null for a request with a key.', 'key'),
  ),
  session_id: orNull(text('ID of the session. Null for a request with a key.', 'q3Zt0bV1kXyA')),
  expires_at: orNull(time('When the session ends. Null for a request with a key.')),
  version: text('Version of the program.', '0.1.0'),
});
export type Caller = Static<typeof callerRecord.schema>;
