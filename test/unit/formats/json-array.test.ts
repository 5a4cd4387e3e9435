import fc from 'fast-check';
import { expect, it } from 'vitest';
import { InputError } from '../../../src/base/errors.ts';
import { type ArrayEnvelope, arrayToNdjson } from '../../../src/formats/json-document.ts';
import { runs } from '../../support/runs.ts';
import { bytewise, collect, inPieces } from './in-pieces.ts';

async function convert(
  body: string | Buffer,
  envelope: ArrayEnvelope = 'users',
  ends: readonly number[] = [],
) {
  const bytes = Buffer.from(body as string);
  return (await collect(arrayToNdjson(inPieces(bytes, ends), envelope))).toString();
}

async function refusal(body: string | Buffer, envelope?: ArrayEnvelope): Promise<string> {
  const bytes = Buffer.from(body as string);
  const problem = async (ends: readonly number[]) => {
    const error = await convert(bytes, envelope, ends).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InputError);
    const [{ code, message, details }] = (error as InputError).problems;
    return `${code}: ${message} (${details})`;
  };
  const refusalAtOnce = await problem([]);
  if (bytes.length < 10_000) expect(await problem(bytewise(bytes)), 'byte by byte').toBe(refusalAtOnce);
  return refusalAtOnce;
}

const isJsonArray = (text: string) => {
  try {
    return Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
};

it('every element becomes one line, for any layout, envelope and split', async () => {
  const indent = fc.constantFrom('', ' ', '\t', '   ');
  const wrap = fc.constantFrom<readonly [string, string]>(
    ['', ''],
    ['{"users":', '}'],
    ['\ufeff {"a":{"users":[1,{"users":[2]}]},"companies_":[[3]],"users" : ', ' ,"b":[[],"\\"]"] }\r\n'],
  );
  const input = fc.tuple(
    fc.array(fc.jsonValue(), { maxLength: 6 }),
    indent,
    wrap,
    fc.array(fc.nat(400), { maxLength: 8 }),
  );
  await fc.assert(
    fc.asyncProperty(input, async ([values, spaces, [prefix, suffix], cuts]) => {
      const text = prefix + JSON.stringify(values, null, spaces) + suffix;
      const lines = values.map((value) => `${JSON.stringify(value)}\n`).join('');
      expect(
        await convert(
          text,
          'users',
          cuts.sort((a, b) => a - b),
        ),
      ).toBe(lines);
    }),
    { numRuns: runs(1000) },
  );
});

it('arrays are accepted exactly if JSON.parse accepts them', async () => {
  const tokens = String.raw`[ ] { } , : " "a" "\u12aF" "\x" \ true false null nul 0 1 - -0 01 1.5 1. .5 1e5 1E+5 1e + e "ü" [] {} "a":1 [1,2]`;
  const token = fc.constantFrom(...tokens.split(' '), '\n', ' ', '\u000b', '\t', '\u00a0');
  const text = fc.oneof(
    fc.array(token, { maxLength: 8 }).map((parts) => `[${parts.join('')}]`),
    fc.array(token, { maxLength: 5 }).map((parts) => `[${parts.join(',')}]`),
    fc.array(token, { maxLength: 4 }).map((parts) => `[{"k":${parts.join('')}}]`),
    fc.array(token, { maxLength: 3 }).map((parts) => `[{${parts.join('')}}]`),
  );
  let acceptedCount = 0;
  await fc.assert(
    fc.asyncProperty(text, fc.boolean(), async (body, byByte) => {
      const ends = byByte ? bytewise(Buffer.from(body)) : [];
      const isAccepted = await convert(body, undefined, ends).then(
        () => true,
        () => false,
      );
      expect(isAccepted, body).toBe(isJsonArray(body));
      if (isAccepted) acceptedCount++;
    }),
    { numRuns: runs(8_000) },
  );
  expect(acceptedCount).toBeGreaterThan(runs(1_000));
});

it('an element of 8 MiB is written in pieces', async () => {
  const huge = `{"a":"${'x'.repeat(8 << 20)}"}`;
  const bytes = Buffer.from(`[1,${huge},2]`);
  const pieces: number[] = [];
  let text = '';
  const ends = Array.from({ length: 140 }, (_, i) => i << 16);
  for await (const piece of arrayToNdjson(inPieces(bytes, ends), 'users')) {
    pieces.push(piece.length);
    text += piece.toString();
  }
  expect(Math.max(...pieces)).toBeLessThanOrEqual(65_537);
  expect(text === `1\n${huge}\n2\n`).toBe(true);
});

it('invalid JSON is refused with its line, column and byte', async () => {
  expect(await refusal('[{"a":1},\n {"a":1,}]')).toBe(
    "invalid_json: The body is not valid JSON: unexpected '}' where a key in quotes is expected (line 2, column 9 (byte 18))",
  );
  expect(await refusal('[1 2]')).toContain('unexpected \'2\' where "," or the end');
  expect(await refusal('["a\nb"]')).toContain(
    'unexpected byte 0xa in a string, number or literal (line 1, column 4 (byte 3))',
  );
  expect(await refusal('[1]x')).toContain(
    'where nothing after the end is expected (line 1, column 4 (byte 3))',
  );
  expect(await refusal('\ufeff[1]x')).toContain('(line 1, column 4 (byte 6))');
});

it('a body without its array is refused with the correct form, even for NDJSON', async () => {
  const advice = 'send {"batch":[…]}, […], or NDJSON as application/x-ndjson';
  const record = '{"type":"track"}';
  for (const body of [record, `${record}\n${record}\n`, `${record}{`]) {
    expect(await refusal(body, 'batch')).toBe(
      `missing_field: The body has no array "batch"; ${advice} (no array of objects was seen; keys seen: type)`,
    );
  }
  expect(await refusal('{"events":[{}]}', 'batch')).toBe(
    `missing_field: The body has no array "batch"; ${advice} (arrays of objects seen: events)`,
  );
  expect(await refusal('{"users":7}')).toMatch(/^invalid_field: "users" is no array in this body \(/);
  expect(await refusal('{"users":[],"users":[1]}')).toBe(
    'invalid_field: The body has more than one array "users" ("users")',
  );
  expect(await refusal(' ')).toBe('empty_file: The body is empty ()');
  expect(await refusal('user_id,name')).toContain('invalid_json');
});

it('text that is not UTF-8 is refused with the place of the byte', async () => {
  const latin1 = Buffer.concat([Buffer.from('["é'), Buffer.from([0xe9]), Buffer.from('"]')]);
  expect(await refusal(latin1)).toBe(
    'invalid_json: The body is not valid JSON: it is not UTF-8 (byte 4: 0xE9)',
  );
  expect(await refusal(Buffer.from([0x5b, 0x22, 0xf0, 0x9f]))).toContain('it is not UTF-8 (byte 2: 0xF0)');
});

it('10,000 levels of nesting are accepted, and 100,001 are refused', async () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  expect(await convert(nested(10_000))).toBe(`${nested(9_999)}\n`);
  expect(await refusal(nested(100_001))).toContain('nested more than 100000 levels');
});
