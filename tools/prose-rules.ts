/**
 * Finds comments and test titles that a reader may have to read twice. The rules match words
 * without grammar, so they miss many.
 */

export interface ProseProblem {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  readonly hint: string;
}

type Rule = readonly [pattern: RegExp, hint: string];

const maxColumns = 100;

const phraseRules: readonly Rule[] = [
  [/\b(?:who|what|which)ever\b/gi, 'name the noun'],
  [/(?<!\bthere )\b(?:is|are) no (?!longer\b|more\b)\w/gi, 'write "is not a"'],
  [/\b(?:stands|stood|lies|bears)\b/gi, 'write "is", "has" or "contains"'],
  [/\banew\b/gi, 'write "again"'],
  [/\bgo(?:es)? on\b/gi, 'write "continues"'],
  [/\b(?:is|are|was|were) (?:told|said)\b/gi, 'write "reports" or "specifies"'],
  [
    /(?<=^|[.:;!?] )(?:what|those|of (?:an?|the|all|those|which)|how often) /gi,
    'begin with a noun or a verb',
  ],
];

const verbs =
  'is|are|was|were|has|have|does|can|cannot|must|may|never|told|accepts|adds|becomes|begins|brings|' +
  'creates|finds|follows|gives|goes|ignores|keeps|makes|opens|prints|puts|reads|refuses|removes|' +
  'replaces|says|sends|shows|stops|takes|tells|throws|waits';
const verbsOrNouns =
  'answers|calls|cancels|counts|deletes|ends|exports|fails|imports|leaves|lists|loads|names|rejects|' +
  'retries|returns|runs|starts|stores|uses|writes';
const determiners = 'an?|all|each|every|its|no|nothing|one|only|the|this|what';
// "writes the file" lacks a subject, but "writes of two workers" has one.
const headlessTitle = new RegExp(`^(?:(?:${verbs})|(?:${verbsOrNouns}) (?:${determiners})) `, 'i');

/** Returns the problems, sorted by line. Only tests have titles. */
export function findProseProblems(source: string, isTest: boolean): ProseProblem[] {
  const lines = source.split('\n');
  const problems = paragraphsOf(lines).flatMap((paragraph) => [
    ...findWideLines(lines, paragraph),
    ...findPhrases(lines, paragraph),
  ]);
  if (isTest) problems.push(...findTitleProblems(source));
  return problems.sort((a, b) => a.line - b.line);
}

/** Consecutive comment lines: a sentence may span several. */
interface Paragraph {
  readonly start: number;
  readonly texts: string[];
}

/** A tool reads such a comment, which must stay on one line. */
const directive = /^(?:biome-ignore|@ts-|proves:)/;

function paragraphsOf(lines: readonly string[]): Paragraph[] {
  const paragraphs: Paragraph[] = [];
  let current: Paragraph | null = null;
  let isInBlock = false;
  for (const [index, line] of lines.entries()) {
    const opensBlock = /^\s*\{?\/\*/.test(line);
    const text = commentText(line, isInBlock);
    if (opensBlock) isInBlock = true;
    if (line.includes('*/')) isInBlock = false;
    if (text === '' || directive.test(text)) {
      current = null;
      continue;
    }
    if (current === null || opensBlock || /^(?:@|- )/.test(text)) {
      current = { start: index, texts: [] };
      paragraphs.push(current);
    }
    current.texts.push(text.replace(/^- /, ''));
  }
  return paragraphs;
}

/** Returns the text of a comment line, or '' for a line that is not a comment. */
function commentText(line: string, isInBlock: boolean): string {
  const pattern = isInBlock ? /^\s*\*?(?!\/)(.*)$/ : /^\s*(?:\{?\/\*+|\/\/|--(?= ))(.*)$/;
  const text = pattern.exec(line)?.[1] ?? '';
  return text.replace(/\*+\/.*$/, '').trim();
}

function findWideLines(lines: readonly string[], { start, texts }: Paragraph): ProseProblem[] {
  return lines.slice(start, start + texts.length).flatMap((line, offset) => {
    if (line.length <= maxColumns) return [];
    return { line: start + offset + 1, text: line.trim(), hint: `wrap at ${maxColumns} columns` };
  });
}

function findPhrases(lines: readonly string[], { start, texts }: Paragraph): ProseProblem[] {
  const text = texts.join('\n');
  const oneLine = texts.join(' ');
  return phraseRules.flatMap(([pattern, hint]) =>
    [...oneLine.matchAll(pattern)].map(({ index }) => {
      const line = start + text.slice(0, index).split('\n').length;
      return { line, text: lines[line - 1]?.trim() ?? '', hint };
    }),
  );
}

/** A table of cases or a condition may precede the title. */
const titlePattern =
  /(?:\b(it|test|describe)(?:\.\w+)*|\))\(\s*(['"`])((?:\\.|(?!\2)[^\\])*)\2,\s*(?=async\b|function\b|\(|\{)/g;

function findTitleProblems(source: string): ProseProblem[] {
  return [...source.matchAll(titlePattern)].flatMap((match) => {
    const [whole, callee, , title = ''] = match;
    const hints = phraseRules.filter(([pattern]) => title.search(pattern) >= 0).map(([, hint]) => hint);
    if (callee !== 'describe' && headlessTitle.test(title)) hints.push('begin with the subject of the verb');
    const line = source.slice(0, match.index + whole.indexOf(title)).split('\n').length;
    return hints.map((hint) => ({ line, text: title, hint }));
  });
}
