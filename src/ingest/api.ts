import { Type } from 'typebox';
import { errorCodes } from '../base/errors.ts';
import { MAX_EVENT_NAME_BYTES, MAX_ID_BYTES } from '../base/limits.ts';
import { choice, component, count, defineRecord, items, orNull, text } from '../http/schema.ts';

/** A whole number is converted to a string. */
const id = (description: string) =>
  Type.Unsafe<string | number>({
    type: ['string', 'integer'],
    minLength: 1,
    maxLength: MAX_ID_BYTES,
    description,
  });

const nullableId = (description: string) =>
  Type.Optional(
    Type.Unsafe<string | number | null>({ ...id(description), type: ['string', 'integer', 'null'] }),
  );

const anyValue = { description: 'Any JSON value. Null removes the property.' };

const properties = (description: string, values: object | true = anyValue) =>
  Type.Optional(Type.Object({}, { additionalProperties: values as object, description }));

const bulkProperties = properties('Properties: any JSON values. Null removes a property.', true);

export const userItem = component(
  'UserItem',
  Type.Object(
    {
      user_id: id('ID of the user.'),
      company_id: nullableId(
        'ID of the company of the user, which is created if it is new. Null removes the user from the company.',
      ),
      company: Type.Optional(
        Type.Unsafe<Record<string, unknown> | null>({
          type: ['object', 'null'],
          additionalProperties: true,
          description:
            'Alternative to `company_id`: an object with `company_id` and properties of the company.',
        }),
      ),
      metadata: bulkProperties,
    },
    {
      additionalProperties: true,
      description: 'A user. Other keys are properties too.',
      examples: [{ user_id: 'u1', company_id: 'acme', metadata: { plan: 'pro', logins: 7 } }],
    },
  ),
);

export const companyItem = component(
  'CompanyItem',
  Type.Object(
    { company_id: id('ID of the company.'), metadata: bulkProperties },
    {
      additionalProperties: true,
      description: 'A company. Other keys are properties too.',
      examples: [{ company_id: 'acme', metadata: { name: 'Acme GmbH', size: 120 } }],
    },
  ),
);

export const batchItem = component(
  'BatchItem',
  Type.Object(
    {
      type: choice(
        ['identify', 'track', 'company'],
        'Kind of record. The other fields are the same as in /v1/identify, /v1/track or /v1/companies/identify.',
      ),
    },
    {
      additionalProperties: true,
      description:
        'One record. An event may have `event_id` (or `insert_id`) and `inserted_at` (or `timestamp`), as in /v1/track.',
      examples: [{ type: 'track', user_id: 'u1', event_name: 'signed_up', metadata: { via: 'ads' } }],
    },
  ),
);

export const batchResult = defineRecord('BatchResult', 'The result of a batch.', {
  accepted: count('Number of committed items.', 2),
  rejected: items('The refused items, in order.', {
    index: count('Position of the item, from 0.'),
    error_code: choice(Object.keys(errorCodes), 'Error code: stable, for programs.', 'missing_field'),
    message: text('A sentence for a person.', 'event_name is missing (event_name)'),
  }),
});

const companyOfUser = Type.Object(
  {
    company_id: Type.Optional(id('ID of the company.')),
    id: Type.Optional(id('Alias of `company_id`. If both are given, they must be equal.')),
    metadata: properties('Properties of the company.'),
  },
  {
    additionalProperties: anyValue,
    description:
      'The company of the user, which is created if it is new. Other keys are properties of the company. `{}` counts as absent; null removes the user from the company.',
  },
);

export const identifyBody = Type.Object(
  {
    user_id: id('ID of the user.'),
    metadata: properties('Properties of the user.'),
    company: Type.Optional(orNull(companyOfUser)),
    company_id: nullableId('Alternative to `company.company_id`. Null removes the user from the company.'),
  },
  { additionalProperties: anyValue, description: 'A user. Other keys are properties too.' },
);

export const identifyCompanyBody = Type.Object(
  { company_id: id('ID of the company.'), metadata: properties('Properties of the company.') },
  { additionalProperties: anyValue, description: 'A company. Other keys are properties too.' },
);

const instantText = (description: string) =>
  Type.Optional(
    Type.Unsafe<string | number | null>({
      type: ['string', 'integer', 'null'],
      pattern:
        '^(\\d{4}-\\d{2}-\\d{2}([Tt ]\\d{2}:\\d{2}(:\\d{2}([.,]\\d{1,9})?)?([Zz]|[+-]\\d{2}:?\\d{2})?)?|\\d{9,14}(\\.\\d{1,9})?)$',
      description,
      examples: ['2026-11-20T12:34:56.123456Z', 1_795_177_200],
    }),
  );

export const trackBody = Type.Object(
  {
    user_id: id('ID of the user, who need not exist yet.'),
    event_name: Type.String({
      minLength: 1,
      maxLength: MAX_EVENT_NAME_BYTES,
      description: 'Name of the event.',
    }),
    metadata: properties('Properties of the event: any JSON values.', true),
    event_id: nullableId('ID of the event. An event that the same user sends again is stored once.'),
    insert_id: nullableId('Alias of `event_id`.'),
    inserted_at: instantText(
      'When the event happened: an ISO 8601 date or instant (UTC unless it has an offset), or seconds or milliseconds since 1970. Default: now.',
    ),
    timestamp: instantText('Alias of `inserted_at`.'),
    company_id: nullableId('ID of the company. Default: the current company of the user.'),
    company: Type.Optional({
      description:
        'Alternative to `company_id`: an object with `company_id` or `id`. Its other keys are properties.',
    }),
  },
  { additionalProperties: true, description: 'An event. Other keys are properties too.' },
);
