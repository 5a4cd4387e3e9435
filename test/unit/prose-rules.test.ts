import { expect, test } from 'vitest';
import { findProseProblems } from '../../tools/prose-rules.ts';

const hintsOf = (source: string, isTest = false) =>
  findProseProblems(source, isTest).map(({ line, hint }) => `${line}: ${hint}`);
const titleTest = (title: string, callee = 'test') => `${callee}('${title}', async () => {});`;

test.each([
  ['Whoever has the lock deletes it.', 'name the noun'],
  ['A closed stream is no error.', 'write "is not a"'],
  ['The cell stands before a tab.', 'write "is", "has" or "contains"'],
  ['The export begins anew.', 'write "again"'],
  ['The load goes on after an error.', 'write "continues"'],
  ['The queue is told after the commit.', 'write "reports" or "specifies"'],
  ['What a load stores.', 'begin with a noun or a verb'],
  ['Loads run in order. Those of users are first.', 'begin with a noun or a verb'],
  ['The size: of a file.', 'begin with a noun or a verb'],
  ['How often a task may fail.', 'begin with a noun or a verb'],
])('a comment with the phrase of %j is a problem in TypeScript, JSX and SQL', (text, hint) => {
  for (const comment of [`// ${text}`, `/** ${text} */`, `{/* ${text} */}`, `  -- ${text}`])
    expect(hintsOf(`select 1;\n${comment}\n`)).toEqual([`2: ${hint}`]);
});

test.each([
  'There is no worker.',
  'The file is no longer open.',
  'A reader of what is stored, in the order of a load.',
  'Reads those records that failed.',
])('the comment %j is not a problem', (text) => {
  expect(hintsOf(`// ${text}`)).toEqual([]);
});

test('a phrase is found across two lines, on the line of its first word', () => {
  expect(hintsOf('/**\n * A missing file is\n * no error.\n */')).toEqual(['2: write "is not a"']);
  expect(hintsOf('// A list\n// of the loads.')).toEqual([]);
});

test('a paragraph, a list and a tag begin sentences', () => {
  const comment = [
    '/**',
    ' * Loads',
    ' *',
    ' * Of a file.',
    ' * - What is stored',
    ' * @throws Error',
    ' */',
  ];
  expect(hintsOf(comment.join('\n'))).toEqual([
    '4: begin with a noun or a verb',
    '5: begin with a noun or a verb',
  ]);
});

test('code and texts in code are not comments', () => {
  expect(hintsOf("const text = 'whoever';\nclass A {\n  *anew() {}\n}\nrun(`\n  stands\n`);")).toEqual([]);
});

test('a comment of more than 100 columns is a problem, unless a tool reads it', () => {
  const words = 'a'.repeat(101);
  expect(hintsOf(`// ${words.slice(3)}`)).toEqual(['1: wrap at 100 columns']);
  expect(hintsOf(`// ${words.slice(4)}`)).toEqual([]);
  expect(hintsOf(`// biome-ignore lint: ${words}\n// proves: ${words}\nrun('${words}');`)).toEqual([]);
});

test('titles of tests and of groups are searched, also behind a table of cases', () => {
  const title = 'a load goes on';
  for (const callee of ['test', 'it.concurrent', 'describe', 'test.each([\n1,\n])'])
    expect(findProseProblems(titleTest(title, callee), true)).toMatchObject([{ text: title }]);
  expect(hintsOf(titleTest(title))).toEqual([]);
});

test.each(['is refused', 'keeps its order', 'never overwrites a file', 'writes the first key'])(
  'the title %j has no subject',
  (title) => {
    expect(hintsOf(titleTest(title), true)).toEqual(['1: begin with the subject of the verb']);
    expect(hintsOf(titleTest(title, 'describe'), true)).toEqual([]);
  },
);

test.each([
  'a load keeps its order',
  'writes of two workers are serial',
  'rejects name the column',
  'loads run in order',
])('the title %j has a subject', (title) => {
  expect(hintsOf(titleTest(title), true)).toEqual([]);
});
