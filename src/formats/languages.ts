/*
 * How languages in Latin script are told by the letters they have beside those of ASCII: how often each comes among them
 * (roughly, in hundredths, from names and prose), and what stands beside it. A byte such as 0xE8 is è in one code page and č
 * in another: a vowel, which stands between consonants, or a consonant, which stands beside vowels.
 */
import type { AdvisedEncoding } from '../domain/source.ts';

/** A language, as a chance for each of its letters. */
export type Language = ReadonlyMap<string, number>;

/** A code page's letters, as far as they differ from those of windows-1252. */
export interface WrittenPage {
  readonly encoding: AdvisedEncoding;
  readonly languages: readonly Language[];
  /** The lead that windows-1252 needs over this page, as a logarithm; it depends on how common the page is. */
  readonly margin: number;
}

const language = (letters: string): Language =>
  new Map(
    [...letters.matchAll(/(\D)([\d.]+)/gu)].map(([, letter = '', share]) => [letter, Number(share) / 100]),
  );

const german = language('ü36ä28ö20ß12é4');

export const westernLanguages: readonly Language[] = [
  german,
  language('é55è11à14ê6ç5î2ô2û2ù2â2ë2ï2œ1ÿ0.1'),
  language('ó27í25á22é15ñ7ú6ü1'),
  language('ã20ç16á15é12í11ó7õ6ê6ú4â3à2ô2'),
  language('à28è30ù12ò14é10ì8'),
  language('ä45å30ö27é3'),
  language('ø36å34æ20é3ö1ä1'),
  language('á18í17ð18ó11þ10æ9ö8é6ú6ý4'),
  language('ë55é25ï10ö5ü3è2'),
  language('à25ó20é16è14í10ç6ò6ú4ï3ü2'),
];

/** Code pages whose texts could pass for Western European ones. */
export const rivalPages: readonly WrittenPage[] = [
  {
    encoding: 'windows-1250',
    margin: 1,
    languages: [
      german,
      language('í22á17é9ý8ě11ř9š7č8ž8ů4ú2ó1ň1ť1ď0.5'),
      language('á22í12ú10č10ý9é9š9ž9ť5ľ4ň2ô2ä1ó1ŕ0.2ĺ0.2'),
      language('ł22ą15ę14ó12ś11ż11ć6ń4ź1'),
      language('á31é28ö9ó9ő8í5ü5ú3ű2'),
      language('ă30ş20ţ18î12â10á1é1'),
      language('č30š25ž20ć15đ6'),
    ],
  },
  {
    encoding: 'windows-1254',
    margin: 1,
    languages: [german, language('ı30ü17ş16ç11ğ10ö8İ6â0.5')],
  },
  {
    encoding: 'windows-1257',
    margin: 0,
    languages: [
      german,
      language('ė16š13ų13į6ž8ū8č5ą9ę4'),
      language('ā30ī14ē13š10ņ7ū6ļ5ž5č3ķ3ģ2'),
      language('ä35õ28ü22ö12š1ž1'),
    ],
  },
];

/** The likelihood of a letter that the language does not have. */
const STRAY = 0.0005;

const vowel = /[aeiouyàáâãäåæèéêëìíîïòóôõöøœùúûüýÿěůőűąęăıāēīūėįų]/;
const asciiVowel = /[aeiouy]/;
const asciiLetter = /[a-z]/;

/** The likelihood of a letter between these neighbours, which are empty at the ends of a word. */
type Habit = (before: string, after: string) => number;

/** Letters with neighbours of their own. */
const habits: ReadonlyMap<string, Habit> = new Map<string, Habit>([
  // "ã" and "õ" stand before o and e, or at the end; "ă" before a consonant.
  ['ã', (_, after) => (after === 'o' || after === 'e' || after === '' ? 0.9 : 0.05)],
  ['õ', (_, after) => (after === 'e' ? 0.9 : 0.03)],
  ['ă', (_, after) => (asciiVowel.test(after) ? 0.05 : 0.8)],
  // Before a vowel; the Polish one never is.
  ['ñ', (_, after) => (asciiVowel.test(after) ? 0.9 : 0.05)],
  ['ń', (_, after) => (asciiVowel.test(after) ? 0.02 : 0.9)],
  // Begins no word; the "đ" of Croatian does.
  ['ð', (before) => (before === '' ? 0.02 : asciiVowel.test(before) ? 0.6 : 0.3)],
  // A diaeresis separates vowels.
  ['ï', (before, after) => (asciiVowel.test(before) || asciiVowel.test(after) ? 0.7 : 0.1)],
]);

/** Returns the likelihood of a letter of this kind between these neighbours; letters beyond ASCII count for nothing. */
function fitOfNeighbours(letter: string, before: string, after: string): number {
  const habit = habits.get(letter);
  if (habit !== undefined) return habit(before, after);
  const isVowel = vowel.test(letter);
  let fit = 1;
  for (const neighbour of [before, after]) {
    if (asciiLetter.test(neighbour)) fit *= asciiVowel.test(neighbour) === isVowel ? 0.2 : 0.8;
  }
  return fit;
}

/** Returns the likelihood that the letters beyond ASCII of this lower-case word belong to the language. */
function fitOfWord(word: string, letters: Language): number {
  let fit = 1;
  for (let at = 0; at < word.length; at++) {
    const letter = word.charAt(at);
    if (letter <= '\x7f') continue;
    const chance = letters.get(letter) ?? STRAY;
    fit *= chance * fitOfNeighbours(letter, word.charAt(at - 1), word.charAt(at + 1));
  }
  return Math.max(fit, Number.MIN_VALUE);
}

const ROUNDS = 5;

/**
 * How likely these words are of the languages in the shares that suit them best, as a logarithm. A list of customers is of
 * several languages, but not of each in equal parts.
 */
export function fitOfWords(words: readonly string[], languages: readonly Language[]): number {
  const fits = words.map((word) => languages.map((each) => fitOfWord(word, each)));
  let shares = languages.map(() => 1 / languages.length);
  for (let i = 0; i < ROUNDS; i++) {
    const sums = shares.map(() => 0);
    for (const fit of fits) {
      const whole = weighted(fit, shares);
      for (const [index, each] of fit.entries()) {
        sums[index] = (sums[index] ?? 0) + (each * (shares[index] ?? 0)) / whole;
      }
    }
    shares = sums.map((sum) => sum / Math.max(1, words.length));
  }
  return fits.reduce((sum, fit) => sum + Math.log(weighted(fit, shares)), 0);
}

function weighted(fit: readonly number[], shares: readonly number[]): number {
  return Math.max(
    Number.MIN_VALUE,
    fit.reduce((sum, each, index) => sum + each * (shares[index] ?? 0), 0),
  );
}

/** Returns true if one of the languages has all letters of the word that are not of ASCII. */
export function isWordOf(languages: readonly Language[], word: string): boolean {
  const letters = [...word].filter((letter) => letter > '\x7f');
  return languages.some((each) => letters.every((letter) => each.has(letter)));
}
