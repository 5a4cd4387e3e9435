import { profileProperties } from './properties.ts';
import { readBody } from './read-body.ts';
import type { CompanyRecord } from './records.ts';

/** The body of /v1/companies/identify. @throws InputError with every problem found. */
export function readCompany(body: Buffer, environmentId: number): CompanyRecord {
  const fields = readBody(body);
  const { company_id, metadata, ...beside } = fields.object;
  const companyId = fields.requiredText(company_id, 'company_id');
  const properties = profileProperties(fields, beside, metadata, '', 'any');
  fields.check();
  return { environmentId, companyId, properties, marked: fields.marked, bytes: body.length };
}
