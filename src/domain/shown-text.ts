/*
 * Names and labels that people give are shown to others: in the console, on a terminal, in a mail. A hidden character can
 * make one name look like another: controls, marks that reorder text (U+202E), spaces without a width.
 */

/**
 * The hidden characters, as ranges for a character class. The two joiners are not among them, because emoji and several
 * scripts need them.
 */
export const hiddenCharacters =
  '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb';

const hidden = new RegExp(`[${hiddenCharacters}]`);
const eachHidden = new RegExp(`[${hiddenCharacters}]`, 'g');
/** A word that is nothing but blanks and joiners. */
const blank = /^[\s\u200c\u200d]*$/;

/** Tells whether the text has 1 to `maxChars` characters, all of which show, on one line. */
export function isShownText(text: string, maxChars: number): boolean {
  return text.length <= maxChars && !blank.test(text) && !hidden.test(text);
}

/** Returns the text without hidden characters. */
export function withoutHidden(text: string): string {
  return text.replace(eachHidden, '');
}
