import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type ExportLayout,
  exportFormats,
  exportLayouts,
  toGivenRequest,
} from '../../../src/domain/export.ts';
import { ExportOptions } from '../../../src/export/options.ts';
import { readRequest } from '../../../src/export/read-request.ts';

const options = new ExportOptions([]);
const readBody = (fields: Readonly<Record<string, unknown>>, usual?: ExportLayout) =>
  readRequest(options, fields, usual);

const ids = fc.uniqueArray(fc.constantFrom('a', 'ü b', 'x:y', '"'), { maxLength: 3 });
const types = [
  'users',
  'identify_company',
  'companies',
  'events',
  'track',
  'page_view',
  'interaction',
  'Sign up',
];
const since = fc.constantFrom('3:3:', '5:9:5,8');
const body = fc.record(
  {
    from: fc.constantFrom('2026-11-01', '2026-11-01T10:00:00.000001Z'),
    to: fc.constantFrom('2026-11-20', '2026-11-20T10:00:00+01:00', '9999-12-31'),
    since,
    event_type: fc.uniqueArray(fc.constantFrom(...types)),
    user_id: ids,
    company_id: ids,
    segment_id: fc.constantFrom(7, '7'),
    exclusions: fc.constantFrom('user:a*,property:p:q', 'segment:1, event:Sign up'),
    layout: fc.constantFrom(...exportLayouts),
    format: fc.constantFrom(...exportFormats, 'json'),
    compression: fc.constant('none'),
    escape_formulas: fc.boolean(),
  },
  { requiredKeys: [] },
);

test('other names of fields count only if the field itself is absent', () => {
  const withOtherNames = { event_types: ['users'], start_date: '2026-11-01', end_date: '2026-11-20' };
  const withOwnNames = { event_type: ['users'], from: '2026-11-01', to: '2026-11-20' };
  expect(readBody(withOtherNames)).toEqual(readBody(withOwnNames));
  const withBothNames = readBody({
    ...withOwnNames,
    start_date: 'nonsense',
    event_type: '',
    event_types: 'companies',
  });
  expect(withBothNames.request).toMatchObject({
    from: readBody(withOwnNames).request.from,
    datasets: ['companies'],
  });
  expect(withBothNames.warnings).toMatchObject([{ details: 'start_date' }]);
  const { warnings } = readBody({ constructor: 1, toString: 'x' });
  expect(warnings.map(({ details }) => details)).toEqual(['constructor', 'toString']);
});

test('the usual layout applies to requests without a layout or removed records', () => {
  const layoutOf = (request: object) => readBody({ ...request }, 'stream').request.layout;
  expect(layoutOf({})).toBe('stream');
  expect(layoutOf({ layout: 'datasets' })).toBe('datasets');
  expect(layoutOf({ since: '1:1:', include_removed: true })).toBe('datasets');
});

// proves: manifest
test('the request in a manifest asks for the same export again', () => {
  fc.assert(
    fc.property(fc.oneof(body, fc.record({ since, include_removed: fc.boolean() })), (requestBody) => {
      const { request, problems } = readBody(requestBody);
      expect(problems).toEqual([]);
      expect(readBody(toGivenRequest(request))).toMatchObject({ request, problems: [], warnings: [] });
    }),
  );
});
