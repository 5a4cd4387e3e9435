import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { InputError, type Problem } from '../../src/base/errors.ts';
import { MAX_DELETION_IDS, MAX_REQUEST_PROBLEMS } from '../../src/base/limits.ts';
import { compileSchema, ruled, worded } from '../../src/base/validation.ts';
import { deletionRequests } from '../../src/deletion/deletions.ts';

const brief = (problems: readonly Problem[]) =>
  problems.map(({ code, message, details }) => `${code} | ${message} | ${details}`);

const even = worded(
  ruled(Type.Integer({ minimum: 0 }), (value) => (value % 2 === 0 ? null : `${value} is odd`)),
  'an even number',
);
const schema = worded(
  Type.Object(
    {
      numbers: Type.Optional(Type.Union([Type.Array(even, { maxItems: 3 }), Type.String()])),
      name: Type.String({ minLength: 1 }),
    },
    { additionalProperties: false },
  ),
  'a named list',
);
const problems = compileSchema(schema);

describe('the problems that a schema reports', () => {
  test('a valid value has no problem', () => {
    expect(problems({ name: 'a', numbers: [2, 4] })).toEqual([]);
    expect(problems({ name: 'a', numbers: 'none' })).toEqual([]);
  });

  test('all problems are reported at once, in the words of the nearest schema', () => {
    expect(brief(problems({ colour: 1, numbers: [2, 3, -1], name: '' }))).toEqual([
      'invalid_field | There is no "colour" here; known: numbers, name | colour',
      'invalid_field | 3 is odd | numbers[1]',
      'invalid_field | an even number | numbers[2]',
      'invalid_field | a named list | name',
    ]);
    expect(brief(problems({}))).toEqual(['missing_field | name is missing | name']);
    expect(brief(problems(null))).toEqual(['invalid_field | a named list | ']);
  });

  test('a problem of a union is that of the variant of the same type, or of the union', () => {
    expect(brief(problems({ name: 'a', numbers: [true] }))).toEqual([
      'invalid_field | an even number | numbers[0]',
    ]);
    expect(brief(problems({ name: 'a', numbers: 5 }))).toEqual(['invalid_field | a named list | numbers']);
  });

  test('a list that is too long is refused for its length only', () => {
    expect(brief(problems({ name: 'a', numbers: [1, 1, 1, 1] }))).toEqual([
      'invalid_field | a named list | numbers',
    ]);
  });

  test('a schema that is refused as a whole reports one problem', () => {
    const link = compileSchema(
      worded(Type.Object({ a: Type.String(), b: Type.String() }), {
        wording: { code: 'not_found', message: 'no such link', details: '' },
        isOneProblem: true,
      }),
    );
    expect(brief(link({ a: 1 }))).toEqual(['not_found | no such link | ']);
  });
});

describe('the ids of a deletion', () => {
  const readBody = (body: string) => {
    try {
      return deletionRequests([]).read('users', Buffer.from(body));
    } catch (error) {
      if (error instanceof InputError) return brief(error.problems);
      throw error;
    }
  };

  test('the ids of a deletion may be texts, exact numbers, or objects with one id', () => {
    expect(readBody('{"users":["u1",3,{"user_id":12345678901234567890},"u1"],"purge_exports":true}')).toEqual(
      {
        ids: ['u1', '3', '12345678901234567890'],
        purgeExports: true,
        options: {},
        dryRun: false,
      },
    );
  });

  test('every wrong id of a deletion is reported, up to a hundred', () => {
    expect(readBody('{"users":["",{"user_id":null},{"user_id":"","x":1},[]]}')).toEqual([
      'invalid_field | The id is empty | users[0]',
      'missing_field | user_id is missing | users[1].user_id',
      'invalid_field | There is no "x" here; known: user_id | users[2].x',
      'invalid_field | The id is empty | users[2].user_id',
      'invalid_field | An id is a string or a number | users[3]',
    ]);
    const wrongIds = Array.from({ length: MAX_DELETION_IDS }, () => ({ id: null, user_id: false }));
    const cpuBefore = process.cpuUsage();
    expect(readBody(JSON.stringify({ users: wrongIds }))).toHaveLength(MAX_REQUEST_PROBLEMS);
    // While the service validates a request, all other requests wait. Collecting every problem of
    // this body would take seconds.
    expect(process.cpuUsage(cpuBefore).user / 1_000).toBeLessThan(1_000);
  });
});
