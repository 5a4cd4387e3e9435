import { isObject } from '../mapping/json-object.ts';
import type { Fields } from './fields.ts';
import { profileProperties } from './properties.ts';
import { readBody } from './read-body.ts';
import type { Properties, UserRecord } from './records.ts';

/** The body of /v1/identify. @throws InputError with every problem found. */
export function readUser(body: Buffer, environmentId: number): UserRecord {
  const fields = readBody(body);
  const { user_id, company_id, company, metadata, ...beside } = fields.object;
  const userId = fields.requiredText(user_id, 'user_id');
  const properties = profileProperties(fields, beside, metadata, '', 'text');
  const moved = readCompany(fields, company, company_id);
  fields.check();
  return { environmentId, userId, properties, ...moved, marked: fields.marked, bytes: body.length };
}

interface Moved {
  readonly companyId: string | null;
  readonly company: Properties;
}

/** `company`, or `company_id` as in bulk data; null for either takes the user out of the company. */
function readCompany(fields: Fields, company: unknown, plainId: unknown): Moved {
  if (company === undefined || company === null) {
    if (plainId === undefined) return { companyId: company === null ? '' : null, company: {} };
    return { companyId: fields.text(plainId, 'company_id') ?? '', company: {} };
  }
  if (!isObject(company)) {
    fields.objectOf(company, 'company');
    return { companyId: null, company: {} };
  }
  const { company_id: own, id: short, metadata, ...others } = company;
  const companyId = fields.requiredText(own ?? short ?? plainId, 'company.company_id');
  const beside = own != null && short !== undefined ? { ...others, id: short } : others;
  return { companyId, company: profileProperties(fields, beside, metadata, 'company', 'primitive') };
}
