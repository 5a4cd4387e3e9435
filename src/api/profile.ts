import { type Static, Type } from 'typebox';
import { component, envelope, orNull } from './schema.ts';

const instant = (description: string) =>
  Type.String({ format: 'date-time', description, examples: ['2026-11-20T12:34:56.123456Z'] });

const profileFields = {
  metadata: Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'The properties, with the type and every digit that they are stored with.',
    },
  ),
  first_seen_at: instant('When the profile was made.'),
  last_seen_at: instant('The last identify or load that named it.'),
  updated_at: instant('When it last changed.'),
};

export const userProfile = component(
  'UserProfile',
  Type.Object(
    {
      user_id: Type.String({ description: 'The id, as it was sent.', examples: ['u1'] }),
      company_id: orNull(
        Type.String({
          description: 'The company that the user belongs to now; null: none.',
          examples: ['acme'],
        }),
      ),
      ...profileFields,
    },
    {
      additionalProperties: false,
      description: 'A user as it is stored.',
      examples: [
        {
          user_id: 'u1',
          company_id: 'acme',
          metadata: { name: 'Ada Lovelace', plan: 'pro', logins: 7 },
          first_seen_at: '2026-11-01T08:00:00.000000Z',
          last_seen_at: '2026-11-20T12:34:56.123456Z',
          updated_at: '2026-11-19T17:20:11.004211Z',
        },
      ],
    },
  ),
);
export type UserProfile = Static<typeof userProfile.schema>;

export const companyProfile = component(
  'CompanyProfile',
  Type.Object(
    {
      company_id: Type.String({ description: 'The id, as it was sent.', examples: ['acme'] }),
      ...profileFields,
    },
    {
      additionalProperties: false,
      description: 'A company as it is stored.',
      examples: [
        {
          company_id: 'acme',
          metadata: { name: 'Acme', size: 120 },
          first_seen_at: '2026-11-01T08:00:00.000000Z',
          last_seen_at: '2026-11-20T12:34:56.123456Z',
          updated_at: '2026-11-19T17:20:11.004211Z',
        },
      ],
    },
  ),
);
export type CompanyProfile = Static<typeof companyProfile.schema>;

export const userPage = envelope('UserPage', userProfile.ref, 'Users, by id.');
export type UserPage = Static<typeof userPage.schema>;

export const companyPage = envelope('CompanyPage', companyProfile.ref, 'Companies, by id.');
export type CompanyPage = Static<typeof companyPage.schema>;
