import { type Static, Type } from 'typebox';
import { component, envelope, object, orNull, text, time } from './schema.ts';

const profileFields = {
  metadata: Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'Properties, with the type and every digit as stored.',
      examples: [{ name: 'Ada Lovelace', plan: 'pro', logins: 7 }],
    },
  ),
  first_seen_at: time('When the profile was created.', '2026-11-01T08:00:00.000000Z'),
  last_seen_at: time('When an identify call or a load last named it.', '2026-11-20T12:34:56.123456Z'),
  updated_at: time('When it last changed.', '2026-11-19T17:20:11.004211Z'),
};

export const userProfile = component(
  'UserProfile',
  object(
    {
      user_id: text('ID of the user, as sent.', 'u1'),
      company_id: orNull(text('Current company of the user. Null if there is none.', 'acme')),
      ...profileFields,
    },
    'A stored user.',
  ),
);
export type UserProfile = Static<typeof userProfile.schema>;

export const companyProfile = component(
  'CompanyProfile',
  object({ company_id: text('ID of the company, as sent.', 'acme'), ...profileFields }, 'A stored company.'),
);

export const userPage = envelope('UserPage', userProfile.ref, 'Users, sorted by ID.');

export const companyPage = envelope('CompanyPage', companyProfile.ref, 'Companies, sorted by ID.');
