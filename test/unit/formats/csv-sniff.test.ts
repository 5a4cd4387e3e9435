import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/base/errors.ts';
import type { SourceOptions } from '../../../src/domain/source.ts';
import { type CsvHints, sniffCsv } from '../../../src/formats/csv-sniff.ts';

/**
 * Detects the dialect. `rest` is the text from the header on, or from the first record on if there
 * is no header.
 */
function sniff(text: string, hints: Partial<CsvHints> = {}) {
  const bytes = Buffer.from(text);
  const allHints = { source: {}, map: {}, ...hints };
  const { reading, start, lines } = sniffCsv({ bytes, isWhole: true, hints: allHints });
  const { dialect, headerRows, columns } = reading;
  return { ...dialect, headerRows, columns, lines, rest: bytes.toString('utf8', start) };
}

const sniffWith = (text: string, source: SourceOptions) => sniff(text, { source });

function refusal(text: string, hints: Partial<CsvHints> = {}): string {
  try {
    sniff(text, hints);
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return (error as Error).message;
  }
  return 'none';
}

const table = (delimiter: string, rows: readonly (readonly string[])[]) =>
  rows.map((row) => `${row.join(delimiter)}\n`).join('');
const users = [
  ['user_id', 'name', 'plan'],
  ['u1', 'Ann', 'pro'],
  ['u2', 'Bob', 'free'],
  ['u3', 'Eve', ''],
];
const plain = { quote: '"', escape: '"', comment: '', headerRows: 1, lines: 0 };

describe('the delimiter', () => {
  it.each([',', ';', '\t', '|', '^', '~', ':', '||', '::', '~|~', ', ', '; ', ' | ', '\x01'])(
    'the delimiter %j is recognised from the header',
    (delimiter) => {
      expect(sniff(table(delimiter, users))).toMatchObject({ ...plain, delimiter });
    },
  );

  it('the delimiter may be one blank, or any number of blanks', () => {
    expect(sniff('user_id name plan\nu1 Ann pro\nu2 Bob free\n').delimiter).toBe(' ');
    expect(sniff('user_id  name   plan\nu1       Ann    pro\nu2       Bob    free\n').delimiter).toBe(
      'blanks',
    );
  });

  it('a specified delimiter overrides the recognised one', () => {
    expect(sniffWith('user_id;b,c\n', { delimiter: ',' }).delimiter).toBe(',');
    expect(sniffWith('user_id,b\n', { delimiter: ';' }).delimiter).toBe(';');
    expect(sniffWith('user_id, b\nu1, c\n', { delimiter: ',' }).delimiter).toBe(',');
  });

  it('a line sep= for Excel specifies the delimiter and is skipped', () => {
    const text = 'user_id;a,b\nu1;c,d\n';
    for (const line of ['sep=;\r\n', '"sep=;"\n', 'SEP=;\r']) {
      expect(sniff(line + text)).toMatchObject({ delimiter: ';', rest: text, lines: 1 });
    }
    expect(sniff(`sep=,\n${text}`).delimiter).toBe(',');
    expect(sniffWith(`sep=,\n${text}`, { delimiter: ';' })).toMatchObject({ delimiter: ';', rest: text });
    expect(sniff('sep=;;user_id\n').lines).toBe(0);
  });
});

describe('quotes and escapes', () => {
  it('a single quote is the quote character if only it cuts the records', () => {
    const text = "user_id,name\nu1,'Ann, the first'\nu2,'It''s Bob'\n";
    expect(sniff(text)).toMatchObject({ quote: "'", escape: "'" });
    expect(sniff("'user_id','name'\n'u1','Ann'\n")).toMatchObject({ quote: "'", escape: "'" });
  });

  it('a single quote is the quote character if it encloses all cells of the records', () => {
    expect(sniff("user_id,name\n'u1','Ann'\n'u2',\n")).toMatchObject({ quote: "'", escape: "'" });
    const text = "user_id,name\n'u1','O\\'Neil, Jr'\n'u2','x'\n";
    expect(sniff(text)).toMatchObject({ quote: "'", escape: '\\' });
    expect(sniff("user_id,name\nu1,'Ann'\nu2,'Bob'\n").quote).toBe('"');
    expect(sniff("user_id\n'u1'\n").quote).toBe('"');
    expect(sniffWith("user_id,name\n'u1','Ann'\n'u2','Bob'\n", { quote: '"' }).quote).toBe('"');
  });

  it('a backslash is the escape if only it cuts the records', () => {
    const text = 'user_id,name\nu1,"Ann \\"the first\\", x"\nu2,"Bob"\n';
    expect(sniff(text)).toMatchObject({ quote: '"', escape: '\\' });
    expect(sniff('user_id,name\nu1,"C:\\"\nu2,"Bob"\n').escape).toBe('"');
    expect(sniff(`${text}u3,"C:\\"\nu4,"D:\\"\n`).escape).toBe('"');
    expect(sniff(`${text}u3,C:\\dir\n`).escape).toBe('"');
    expect(sniff(`${text}u3,"C:\\dir"\n`).escape).toBe('"');
    expect(sniff(`${text}u3,"C:\\\\dir"\n`).escape).toBe('\\');
  });

  it('a specified quote or escape overrides the recognised one', () => {
    expect(sniffWith("user_id,name\nu1,'Ann, x'\n", { quote: '"' }).quote).toBe('"');
    expect(sniffWith('user_id,name\nu1,"a"\n', { quote: '' })).toMatchObject({ quote: '', escape: '' });
    expect(sniffWith('user_id,name\nu1,"a"\n', { quote: "'" })).toMatchObject({ quote: "'", escape: "'" });
    expect(sniffWith('user_id,name\nu1,"a"\n', { escape: '\\' })).toMatchObject({ quote: '"', escape: '\\' });
  });
});

it('comments before the header are skipped, and later ones only if specified', () => {
  const text = 'user_id,name\nu1,Ann\n';
  expect(sniff(`# made by x\n# a,b\n${text}`)).toMatchObject({ ...plain, rest: text, lines: 2 });
  expect(sniff(`${text}# two, three, four\n# five\n`).comment).toBe('');
  const options = { rest: text, lines: 1, comment: '%' };
  expect(sniffWith(`% made by x\n${text}`, { comment: '%' })).toMatchObject(options);
});

describe('the header', () => {
  const text = table(';', users);

  // proves: csv-exact
  it.each([
    ['a title', 'Users of March\n'],
    ['a title with delimiters', 'Users, of; March\n'],
    ['titles and blank lines', 'Users\n\nMarch\n\n'],
    ['keys and values', 'Report;Users\nDate;2024-03-01\n\n'],
    ['lines padded with delimiters', 'Users;;\n;;\n'],
    ['a quote that is never closed', 'Users of "March\n'],
    ['lines of dashes', '-----\n'],
  ])('the header is recognised behind %s', (_, preamble) => {
    const lines = preamble.split('\n').length - 1;
    expect(sniff(preamble + text)).toMatchObject({ ...plain, delimiter: ';', rest: text, lines });
  });

  it('a header has two or three records if only together they name an id', () => {
    const map = { 'User id': 'user_id' };
    const rows = 'User,,\nid,name,plan\nu1,Ann,pro\n';
    expect(sniff(rows, { map })).toMatchObject({ headerRows: 2, rest: rows });
    const three = 'User,,\nkey,,\nid,name,plan\nu1,Ann,pro\n';
    expect(sniff(three, { map: { 'User key id': 'user_id' } })).toMatchObject({ headerRows: 3, rest: three });
    const groups = 'User,,Contract\n';
    const namedRows = 'user_id,name,plan\nu1,Ann,pro\n';
    expect(sniff(groups + namedRows)).toMatchObject({ headerRows: 1, rest: namedRows, lines: 1 });
  });

  // proves: csv-exact
  it('a header in the middle of a table is refused as ambiguous', () => {
    const text = 'column,meaning\nuser_id,who\ncompany_id,where\n';
    expect(refusal(text)).toMatch(/Line 2 names an id column.*header=1, 2.*\(header\)/);
    expect(sniffWith(text, { header: 2 })).toMatchObject({ lines: 1 });
  });

  it('a specified header line and number of header records are used', () => {
    expect(sniffWith('a;b\n\nc;d\nu1;Ann\n', { header: 2 })).toMatchObject({
      delimiter: ';',
      rest: 'c;d\nu1;Ann\n',
      lines: 2,
    });
    expect(sniffWith('a\nuser_id;d\nu1;Ann\n', { header: 2 })).toMatchObject({ delimiter: ';', lines: 1 });
    expect(sniffWith('x,y\nuser_id,d\nu1,Ann\n', { header: 1 })).toMatchObject({ lines: 0 });
    expect(sniffWith('a,b\nc,d\n', { header: 1, headerRows: 2 })).toMatchObject({ headerRows: 2 });
    expect(() => sniffWith('a,b\nc,d\n', { header: 3 })).toThrow('fewer than 3 records');
  });
});

describe('a file without a header', () => {
  const map = { '1': 'user_id', '2': 'name' };
  const rows = 'u1;Ann;ann@example.com;3,5\nu2;Bob;bob@example.com;4,25\n';

  it('a file specified as without a header has columns by position', () => {
    expect(sniffWith(rows, { header: 'none' })).toMatchObject({
      delimiter: ';',
      headerRows: 0,
      columns: 4,
      rest: rows,
    });
    expect(sniffWith('u1\nu2\n', { header: 'none' })).toMatchObject({ headerRows: 0, columns: 1 });
    expect(sniffWith('u1,a,b\nu2,a\nu3,a,b\n', { header: 'none' })).toMatchObject({ columns: 3 });
  });

  it('a map of positions and a first record of data imply a file without a header', () => {
    expect(sniff(rows, { map })).toMatchObject({ delimiter: ';', headerRows: 0, columns: 4 });
  });

  it('a mapped number among other texts of the first record is refused as ambiguous', () => {
    const map = { 2: 'user_id' };
    const rows = '2026-01-02,u1,Bob\n2026-01-01,u2,Ann\n';
    expect(refusal(`x,2,3\n${rows}`, { map })).toMatch(/header=none if it is data.*\(header\)/);
    expect(refusal('"u0.","","2"\n"u1","#",";"\n"u2","","a"\n', { map })).toMatch(/\(header\)/);
    for (const header of ['1,2,3\n', 'column_1,column_2,sluice_row\n'])
      expect(
        sniff(header + rows, { map: { [header.includes('c') ? 'column_2' : '2']: 'user_id' } }),
      ).toMatchObject({
        headerRows: 1,
        rest: header + rows,
      });
  });

  // proves: csv-exact
  it('a first record that may be a header is never read as data', () => {
    for (const header of ['id;name;mail;score\n', 'a;b;c;d\n', '1;2;3;4\n', 'id;2019;2020;2021\n']) {
      const headerRows = header.startsWith('1')
        ? sniff(header + rows, { map }).headerRows
        : refusal(header + rows, { map });
      if (header.startsWith('1')) expect(headerRows).toBe(1);
      else expect(headerRows).toMatch(/header=none if it is data.*\(header\)/);
    }
    expect(refusal('u1;Ann\nu2;Bob\n', { map })).toMatch(/\(header\)/);
  });

  // proves: csv-exact
  it('a file without a header is refused if two delimiters cut it equally well', () => {
    expect(refusal('u1,a;b\nu2,c;d\n', { source: { header: 'none' } })).toBe(
      'The records can be cut at "," as well as at ";"; say which with delimiter (delimiter)',
    );
    expect(sniffWith('u1,a;b\nu2,c;d\n', { header: 'none', delimiter: ',' }).columns).toBe(2);
  });
});
