import { Type } from 'typebox';
import { component } from './component.ts';

/** Ids may be numbers in bulk data; they become strings. */
const id = (description: string) =>
  Type.Unsafe<string | number>({ type: ['string', 'number'], minLength: 1, maxLength: 256, description });

const metadata = Type.Optional(
  Type.Object(
    {},
    { additionalProperties: true, description: 'Properties: any JSON values. null removes a property.' },
  ),
);

export const userItem = component(
  'UserItem',
  Type.Object(
    {
      user_id: id('Id of the user.'),
      company_id: Type.Optional(
        Type.Unsafe<string | number | null>({
          ...id('Id of the company of the user, which is created if it is new; null removes it.'),
          type: ['string', 'number', 'null'],
        }),
      ),
      company: Type.Optional(
        Type.Unsafe<Record<string, unknown> | null>({
          type: ['object', 'null'],
          description: 'In place of `company_id`: an object with it, and with properties of the company.',
        }),
      ),
      metadata,
    },
    {
      additionalProperties: true,
      description: 'A user. Keys beside the documented ones are properties too.',
      examples: [{ user_id: 'u1', company_id: 'acme', metadata: { plan: 'pro', logins: 7 } }],
    },
  ),
);

export const companyItem = component(
  'CompanyItem',
  Type.Object(
    { company_id: id('Id of the company.'), metadata },
    {
      additionalProperties: true,
      description: 'A company. Keys beside the documented ones are properties too.',
      examples: [{ company_id: 'acme', metadata: { name: 'Acme GmbH', size: 120 } }],
    },
  ),
);
