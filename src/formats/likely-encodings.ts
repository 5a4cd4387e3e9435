import type { AdvisedEncoding } from '../domain/source.ts';
import { fitOfWords, isWordOf, rivalPages, westernLanguages } from './languages.ts';
import { readCodePage } from './text-encoding.ts';
import { isDecoded } from './utf8.ts';

/** The size of the sample: a few thousand characters say as much as all. */
const SAMPLE_BYTES = 16 * 1024;
/** Encodings that a message names. */
const MAX_NAMED = 2;
/** The fewest characters of another script that count. */
const FEWEST_CHARACTERS = 3;

/** An encoding, and the letters that make up most of what it is used for. */
interface Candidate {
  readonly encoding: AdvisedEncoding;
  readonly common: RegExp;
  /** The share of them among all characters beyond ASCII, from which on it is likely. */
  readonly share: number;
}

const cyrillic = /[оеаинтсрвлкм]/g;
const kana = /[ぁ-んァ-ヶー]/g;

const candidates: readonly Candidate[] = [
  { encoding: 'windows-1251', common: cyrillic, share: 0.5 },
  { encoding: 'koi8-r', common: cyrillic, share: 0.5 },
  { encoding: 'ibm866', common: cyrillic, share: 0.5 },
  { encoding: 'iso-8859-5', common: cyrillic, share: 0.5 },
  { encoding: 'windows-1253', common: /[αοιετσνηρπκςάέήίόύώ]/g, share: 0.5 },
  { encoding: 'windows-1255', common: /[א-ת]/g, share: 0.8 },
  { encoding: 'windows-1256', common: /[ابةتدرسعلمنهوي]/g, share: 0.6 },
  { encoding: 'windows-874', common: /[ก-๎]/g, share: 0.9 },
  { encoding: 'shift_jis', common: kana, share: 0.12 },
  { encoding: 'euc-jp', common: kana, share: 0.12 },
  { encoding: 'euc-kr', common: /[가-힣]/g, share: 0.85 },
  { encoding: 'gb18030', common: /[的一是不人有中大国王李陈林黄张刘杨上海北京市广州深小明]/g, share: 0.05 },
  { encoding: 'big5', common: /[的一是不人有中大國王李陳林黃張劉楊上海台北市小明]/g, share: 0.05 },
];

const strange = /[\u0080-\u009f\ue000-\uf8ff\ufffd]/g;

/**
 * Encodings that bytes which are not UTF-8 may be in, the likeliest first: for a person to choose from, not to read by.
 */
export function likelyEncodings(bytes: Buffer): readonly AdvisedEncoding[] {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  // Bytes that were already decoded cannot be in another encoding.
  if (sample.includes(0) || isDecoded(sample)) return [];
  const western = findWestern(sample);
  if (western.isClear) return ['windows-1252'];
  const scripts = (isOtherScript(sample) ? candidates : [])
    .map((candidate) => ({ candidate, score: scoreOf(sample, candidate) }))
    .filter(({ candidate, score }) => score >= candidate.share)
    .sort((a, b) => b.score / b.candidate.share - a.score / a.candidate.share)
    .map(({ candidate }) => candidate.encoding);
  if (scripts.length > 0) return scripts.slice(0, MAX_NAMED);
  const written: AdvisedEncoding[] = [...western.rivals, 'windows-1252'];
  return western.hasWords ? written.slice(0, MAX_NAMED) : [];
}

/** Bytes beyond ASCII in a row, on average, from which on they can be no Latin script, whatever stands beside them. */
const ROW_BYTES = 2.2;

/** Returns true if bytes beyond ASCII make up words of their own. */
function isOtherScript(sample: Buffer): boolean {
  const rows = [...sample.toString('latin1').matchAll(/([A-Za-z]?)([\x80-\xff]+)([A-Za-z]?)/g)];
  const within = rows.filter(([, before, , after]) => before !== '' || after !== '').length;
  const length = rows.reduce((sum, [, , row = '']) => sum + row.length, 0);
  return 2 * within < rows.length || length >= ROW_BYTES * rows.length;
}

function scoreOf(sample: Buffer, { encoding, common }: Candidate): number {
  const text = new TextDecoder(encoding).decode(sample).replace(/[\0-\x7f]+/g, '');
  if (text.length < FEWEST_CHARACTERS) return 0;
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0;
  return (count(common) - 2 * count(strange)) / text.length;
}

/*
 * Whether bytes that are not UTF-8 are plainly windows-1252. Nothing in a file says so, but what stands there does: letters of
 * Western European languages within words of ASCII letters, quotes where words begin and end, € beside numbers. What is found
 * is counted once however often it comes, so that one city in every record does not drown all else.
 */

/** The findings for bytes taken as windows-1252. */
interface WesternFindings {
  /** They can be nothing else. */
  readonly isClear: boolean;
  /** Code pages that suit the words as well or better. */
  readonly rivals: readonly AdvisedEncoding[];
  /** There are letters beyond ASCII, within words of ASCII letters. */
  readonly hasWords: boolean;
}

/** Different words and marks that are looked at. */
const MAX_FINDINGS = 2_000;
const MAX_WORD_BYTES = 64;
/** Bytes on either side of a mark that say what it does there. */
const MARK_CONTEXT = 3;
/** At most one in so many findings may be odd: a typing error, a symbol, a foreign name. */
const ODD_SHARE = 20;
/** Letters beyond ASCII in a row: no Western European word has more, and any word of another script has. */
const MAX_RUN = 2;

type Finding = 'good' | 'neutral' | 'odd';

const codePage = readCodePage('windows-1252');
const characters = codePage.map((character) => character ?? '\0').join('');
const letter = /\p{L}/u;
const isLetter = codePage.map(
  (character) => character !== null && letter.test(character) && character !== 'ª' && character !== 'º',
);
/** Not there, or of the kind that stands for something else in ISO-8859-15: never guessed at. */
const doubtful = new Set([...codePage.keys()].filter((byte) => codePage[byte] === null));
for (const byte of [0xa4, 0xa6, 0xa8, 0xb8]) doubtful.add(byte);
/** Control characters, but for TAB, line ends, and the end of the file as DOS had it. */
for (let byte = 0; byte < 0x20; byte++) if (![9, 10, 11, 12, 13, 26].includes(byte)) doubtful.add(byte);

export function findWestern(head: Buffer): WesternFindings {
  const seen = new Set<string>();
  const words: string[] = [];
  const counts = { good: 0, neutral: 0, odd: 0 };
  let isDoubtful = false;
  const add = (start: number, end: number, judge: () => Finding): void => {
    const key = head.toString('latin1', Math.max(0, start), end);
    if (seen.has(key)) return;
    seen.add(key);
    counts[judge()]++;
  };
  for (let at = 0; at < head.length; at++) {
    const byte = head[at] as number;
    if (byte >= 0x20 && byte < 0x80) continue;
    isDoubtful ||= doubtful.has(byte);
    if (byte < 0x80 || seen.size >= MAX_FINDINGS) continue;
    if (!isLetter[byte]) {
      add(at - MARK_CONTEXT, at + 1 + MARK_CONTEXT, () => judgeMark(head, at));
      continue;
    }
    const [start, end] = wordAround(head, at);
    const wordEnd = Math.min(end, start + MAX_WORD_BYTES);
    add(start, wordEnd, () => {
      const word = textOf(head, start, wordEnd);
      words.push(word.toLowerCase());
      if (wordEnd < end) return 'odd';
      // "1ère" is a word; degrees as DOS wrote them are none.
      const finding = judgeWord(word);
      return finding === 'good' && isDigit(head[start - 1]) ? 'neutral' : finding;
    });
    at = end - 1;
  }
  const rivals = findRivals(words);
  const isClear =
    !isDoubtful && rivals.length === 0 && counts.good > 0 && counts.odd * ODD_SHARE <= counts.good;
  return { isClear, rivals, hasWords: words.some((word) => asciiLetter.test(word)) };
}

function textOf(bytes: Buffer, start: number, end: number): string {
  let text = '';
  for (let at = Math.max(0, start); at < Math.min(end, bytes.length); at++) {
    text += characters.charAt(bytes[at] as number);
  }
  return text;
}

function wordAround(bytes: Buffer, at: number): [start: number, end: number] {
  let start = at;
  let end = at + 1;
  while (start > 0 && isLetter[bytes[start - 1] as number]) start--;
  while (end < bytes.length && isLetter[bytes[end] as number]) end++;
  return [start, end];
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

const run = new RegExp(`[^\\x00-\\x7f]{${MAX_RUN + 1}}`);
/** A capital in the middle of small letters, or the other way round. */
const mixedCase = /[a-z][À-ÖØ-ÞŠŒŽŸ]|[A-Z][à-öø-ÿšœž][A-Z]/;

const asciiLetter = /[A-Za-z]/;

function judgeWord(word: string): Finding {
  if (!asciiLetter.test(word)) return word.length === 1 ? 'neutral' : 'odd';
  if (run.test(word) || mixedCase.test(word)) return 'odd';
  return isWordOf(westernLanguages, word.toLowerCase()) ? 'good' : 'odd';
}

const anyLetter = /\p{L}/u;
const letterOrDigit = /[\p{L}\d]/u;
/** "l’eau", "O’Brien", "qu’il", "dell’arte", "aujourd’hui"; "it’s", "don’t", "we’ll". */
const elision = /(?:^|[^\p{L}])(?:\p{L}|[Uu]n)$|qu$|ll$|urd$/iu;
const contraction = /^(?:s|t|d|m|ll|re|ve)(?!\p{L})/iu;

function judgeMark(bytes: Buffer, at: number): Finding {
  const before = textOf(bytes, at - MARK_CONTEXT, at);
  const mark = textOf(bytes, at, at + 1);
  const after = textOf(bytes, at + 1, at + 1 + MARK_CONTEXT);
  const [last, next] = [before.at(-1) ?? '', after.charAt(0)];
  const between = anyLetter.test(last) && anyLetter.test(next);
  const besideWord = anyLetter.test(last) || anyLetter.test(next);
  if (mark === '’' && between) return elision.test(before) || contraction.test(after) ? 'good' : 'odd';
  if ('´·\u00a0\u00ad'.includes(mark)) return 'neutral';
  if (between) return 'odd';
  if ('‚„«‹¡¿'.includes(mark)) return opens(last, next) ? 'good' : anyLetter.test(last) ? 'odd' : 'neutral';
  if ('“‘'.includes(mark)) return opens(last, next) ? 'good' : 'neutral';
  if ('”»›…'.includes(mark)) return anyLetter.test(next) ? 'odd' : 'neutral';
  if ('€£'.includes(mark)) return /\d\s?$/.test(before) || /^\s?\d/.test(after) ? 'good' : 'neutral';
  if (mark === '°') return /\d\s?$/.test(before) ? 'good' : 'neutral';
  if ('–—'.includes(mark)) return /\s$/.test(before) && /^\s/.test(after) ? 'good' : 'neutral';
  if ('²³'.includes(mark)) return /(?:^|[^\p{L}])[kcd]?m$/u.test(before) ? 'neutral' : 'odd';
  if ('®™©§ªº•µ’'.includes(mark)) return 'neutral';
  return besideWord ? 'odd' : 'neutral';
}

function opens(last: string, next: string): boolean {
  return !letterOrDigit.test(last) && letterOrDigit.test(next);
}

/** Code pages in which the words would be others, and are not far less likely. */
function findRivals(words: readonly string[]): AdvisedEncoding[] {
  if (words.length === 0) return [];
  const western = fitOfWords(words, westernLanguages);
  return rivalPages
    .map(({ encoding, languages, margin }) => {
      const theirs = inOtherPage(words, encoding);
      const isSame = theirs.every((word, index) => word === words[index]);
      const lead = isSame ? Number.POSITIVE_INFINITY : western - fitOfWords(theirs, languages);
      return { encoding, lead, isRival: lead < margin };
    })
    .filter(({ isRival }) => isRival)
    .sort((a, b) => a.lead - b.lead)
    .map(({ encoding }) => encoding);
}

/** The same bytes there; small letters stand where they stand in windows-1252. */
function inOtherPage(words: readonly string[], encoding: string): string[] {
  const page = readCodePage(encoding);
  const theirs = new Map(codePage.map((character, byte) => [character, page[byte] ?? '\ufffd']));
  return words.map((word) => [...word].map((each) => theirs.get(each) ?? each).join(''));
}
