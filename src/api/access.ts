import { type Static, Type } from 'typebox';
import { exportLayouts } from '../domain/export.ts';
import { keyScopes } from '../domain/scope.ts';
import { worded } from '../validation.ts';
import { choice, component, flag, object, orNull, text, time } from './schema.ts';

const exampleTime = '2026-11-20T12:00:41.120Z';

export const settingRecord = component(
  'Setting',
  object(
    {
      name: text('Name of the setting.', 'MAX_UPLOAD_BYTES'),
      value: text('Value as written. Empty for secrets.', '10g'),
      source: choice(
        ['flag', 'environment', 'file', 'default'],
        'Where the value comes from. `file`: the file that NAME_FILE names.',
      ),
      meaning: text('Meaning of the setting.'),
    },
    'A setting of this server.',
  ),
);
export type Setting = Static<typeof settingRecord.schema>;

export const environmentRecord = component(
  'Environment',
  object(
    {
      name: text('Name of the environment.', 'default'),
      app_token: text('Public token of the environment.', 'NX-1A2B3C4D'),
      allowed_origins: Type.Array(Type.String(), {
        description: 'Origins of the pages that may send records.',
        examples: [['https://app.example.com']],
      }),
      export_layout: choice(exportLayouts, 'Layout of exports that name none.'),
    },
    'A tenant.',
  ),
);
export type Environment = Static<typeof environmentRecord.schema>;

export const environmentName = (description: string) =>
  worded(
    Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,62}$', description, examples: ['staging'] }),
    'an environment is named by 1 to 63 of a-z, 0-9, _ and -',
  );

const allowed = Type.Array(Type.Enum([...keyScopes], { type: 'string' }), {
  description: 'What the key may do.',
});

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

export const apiKey = component('ApiKey', object(keyFields, 'An API key, without the key itself.'));
export type ApiKey = Static<typeof apiKey.schema>;

export const issuedKey = component(
  'IssuedKey',
  object({ ...keyFields, key: text('The key. It is shown only once.', 'slk_…') }, 'A new API key.'),
);

export const callerRecord = component(
  'CallerRecord',
  object(
    {
      environment: text('The environment that the caller works in.', 'default'),
      environments: Type.Array(Type.String(), {
        description: 'The environments that the caller may work in.',
        examples: [['default']],
      }),
      scopes: allowed,
      key_id: text(
        'ID of the key; `API_KEY` or `ADMIN_KEY` for the keys of the configuration.',
        '0tzwkpc87gq5',
      ),
      is_admin: flag('True for a session that began with ADMIN_KEY or with a link from the command line.'),
      session_id: orNull(text('ID of the session. Null for a request with a key.', 'q3Zt0bV1kXyA')),
      expires_at: orNull(time('When the session ends. Null for a request with a key.')),
      version: text('Version of the program.', '0.1.0'),
    },
    'The caller of a request.',
  ),
);
export type Caller = Static<typeof callerRecord.schema>;

export const sessionItem = component(
  'SessionItem',
  object(
    {
      session_id: text('ID of the session.', 'q3Zt0bV1kXyA'),
      holder: choice(
        ['key', 'static_key', 'admin', 'link'],
        'How the session began: with an API key, API_KEY, ADMIN_KEY, or a link from the command line.',
      ),
      key_id: orNull(text('ID of the API key.', '0tzwkpc87gq5')),
      client: text('`User-Agent` of the browser.', 'Mozilla/5.0 …'),
      created_at: time('When the session began.'),
      expires_at: time('When the session ends.'),
      is_own: flag('True for the session of this request.'),
    },
    'A session of the console.',
  ),
);
