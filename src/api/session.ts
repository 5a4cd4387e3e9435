import { type Static, Type } from 'typebox';
import { scopes } from '../domain/scope.ts';
import { worded } from '../validation.ts';
import { component, orNull } from './schema.ts';

/** In a body. */
export const environmentName = (description: string) =>
  worded(
    Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,62}$', description, examples: ['staging'] }),
    'an environment is named by 1 to 63 of a-z, 0-9, _ and -',
  );

/** Who is signed in, as the console asks first of all. */
export const callerRecord = component(
  'CallerRecord',
  Type.Object(
    {
      environment: Type.String({ description: 'What the session looks at.', examples: ['default'] }),
      environments: Type.Array(Type.String(), {
        description: 'What it may look at.',
        examples: [['default']],
      }),
      scopes: Type.Array(Type.Enum([...scopes], { type: 'string' }), { description: 'What it may do.' }),
      key_id: Type.String({
        description: 'Of the key; `API_KEY` or `ADMIN_KEY` for those of the configuration.',
        examples: ['0tzwkpc87gq5'],
      }),
      is_admin: Type.Boolean({
        description: 'It was begun with ADMIN_KEY, or by a link of the command line.',
      }),
      session_id: orNull(
        Type.String({ description: 'Null for a request with a key.', examples: ['q3Zt0bV1kXyA'] }),
      ),
      expires_at: orNull(
        Type.String({ format: 'date-time', description: 'When the session ends; null for a key.' }),
      ),
      version: Type.String({ description: 'Of the program.', examples: ['0.1.0'] }),
    },
    { additionalProperties: false, description: 'Who calls.' },
  ),
);
export type CallerRecord = Static<typeof callerRecord.schema>;

export const sessionItem = component(
  'SessionItem',
  Type.Object(
    {
      session_id: Type.String({ examples: ['q3Zt0bV1kXyA'], description: 'Id of the session.' }),
      holder: Type.Enum(['key', 'static_key', 'admin', 'link'], {
        type: 'string',
        description: 'What was signed in with: an API key, API_KEY, ADMIN_KEY, a link of the command line.',
      }),
      key_id: orNull(Type.String({ description: 'Of the API key.', examples: ['0tzwkpc87gq5'] })),
      client: Type.String({ description: 'As the browser calls itself.', examples: ['Mozilla/5.0 …'] }),
      created_at: Type.String({ format: 'date-time', description: 'When it began.' }),
      expires_at: Type.String({ format: 'date-time', description: 'When it ends.' }),
      is_own: Type.Boolean({ description: 'It is that of this request.' }),
    },
    { additionalProperties: false, description: 'A session of the console.' },
  ),
);
export type SessionItem = Static<typeof sessionItem.schema>;
