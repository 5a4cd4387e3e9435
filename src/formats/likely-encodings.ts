import type { AdvisedEncoding } from '../domain/source.ts';
import { isDecoded } from './utf8.ts';
import { findWestern } from './western-text.ts';

/** What is looked at: a few thousand characters say as much as all. */
const SAMPLE_BYTES = 16 * 1024;
/** Encodings that a message names. */
const MAX_NAMED = 2;
/** Of another script; fewer say nothing. */
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

/** Whether bytes beyond ASCII make up words of their own. */
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
