import { type Static, Type } from 'typebox';
import { scopes } from '../domain/scope.ts';
import { closed, component, orNull } from './schema.ts';

const time = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-11-20T12:00:41.120Z'] });

const keyFields = {
  key_id: Type.String({ description: 'Public: it stands in lists and logs.', examples: ['0tzwkpc87gq5'] }),
  label: Type.String({ description: 'What it is for.', examples: ['nightly import'] }),
  scopes: Type.Array(Type.Enum([...scopes], { type: 'string' }), { description: 'What it allows.' }),
  status: Type.Enum(['live', 'expired', 'revoked'], { type: 'string', description: 'Whether it is good.' }),
  created_at: time('When it was made.'),
  expires_at: orNull({ ...time('When it ends; null: never.'), examples: [null] }),
  revoked_at: orNull({ ...time('When it was revoked; null: it is not.'), examples: [null] }),
  last_used_at: orNull(time('When it was used last, to the minute; null: never.')),
};

export const apiKey = component(
  'ApiKey',
  Type.Object(keyFields, { ...closed, description: 'A key as it is listed: never the key itself.' }),
);
export type ApiKey = Static<typeof apiKey.schema>;

export const issuedKey = component(
  'IssuedKey',
  Type.Object(
    { ...keyFields, key: Type.String({ description: 'The key, this once.', examples: ['slk_…'] }) },
    { ...closed, description: 'A key that was made now.' },
  ),
);
export type IssuedKey = Static<typeof issuedKey.schema>;
