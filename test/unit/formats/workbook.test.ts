import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputError } from '../../../src/base/errors.ts';
import { openWorkbook } from '../../../src/formats/workbook.ts';
import { ZipArchive } from '../../../src/formats/zip.ts';
import { escapeXml, textRow, type WorkbookOfTest, workbookFile } from '../../support/files/workbook-file.ts';
import { runs } from '../../support/runs.ts';
import { collect, wholeFile } from './in-pieces.ts';

async function readBook(bytes: Buffer, sheetName?: string) {
  const archive = await ZipArchive.open(wholeFile(bytes));
  const notes: string[] = [];
  const { csv, ...opened } = await openWorkbook({ archive, guard: () => undefined }, sheetName, notes);
  return { ...opened, text: (await collect(csv)).toString(), notes };
}

async function refusal(bytes: Buffer, sheetName?: string): Promise<string> {
  const error = await readBook(bytes, sheetName).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InputError);
  return `${(error as InputError).problems[0].code}: ${(error as InputError).message}`;
}

function ofRows(rows: string, parts: Omit<WorkbookOfTest, 'sheets'> = {}): Buffer {
  return workbookFile({ sheets: [{ name: 'Data', rows }], ...parts });
}

async function cell(xml: string, parts: Omit<WorkbookOfTest, 'sheets'> = {}): Promise<string> {
  const { text } = await readBook(ofRows(`<row r="1">${xml}<c r="B1" t="b"><v>1</v></c></row>`, parts));
  return text.slice(0, text.lastIndexOf(',true\n'));
}

describe('a workbook', () => {
  it('shared, inline and rich text of cells becomes CSV without pronunciations', async () => {
    const shared = [
      '<t>name</t>',
      '<r><t>Zo</t></r><r><rPr><b/></rPr><t>ë</t></r><rPh sb="0" eb="1"><t>zo</t></rPh>',
      '<t/>',
    ];
    const rows = `<row r="1"><c r="A1" t="inlineStr"><is><r><t>user</t></r><r><t>_id</t></r></is></c><c r="B1" t="s"><v>0</v></c></row>
      <row r="2"><c r="A2" t="inlineStr"><is><t xml:space="preserve"> a,"b"
c&amp;<![CDATA[<d>]]></t></is></c><c r="B2" t="s"><v>1</v></c><c r="C2" t="s"><v>2</v></c></row>`;
    expect(await readBook(ofRows(rows, { shared }))).toEqual({
      sheet: 'Data',
      sheets: ['Data'],
      text: 'user_id,name\n" a,""b""\nc&<d>",Zoë\n',
      notes: [],
    });
  });

  // proves: workbook-exact
  it('numbers keep their digits without the noise of their notation', async () => {
    for (const [xmlNumber, text] of [
      ['1E3', '1000'],
      ['1.1000000000000001', '1.1'],
      ['0.30000000000000004', '0.30000000000000004'],
      ['5.0', '5'],
      ['-0', '0'],
      ['-12.50', '-12.5'],
      ['1.2345678901234567E+19', '12345678901234567000'],
      ['12345678901234567890', '12345678901234567890'],
      ['1E-7', '1e-7'],
      ['1E21', '1e+21'],
      [' 7 ', '7'],
    ]) {
      expect(await cell(`<c r="A1"><v>${xmlNumber}</v></c>`), xmlNumber).toBe(text);
    }
    expect(await cell('<c r="A1" s="1"><v>1234</v></c>', { formats: ['00000'] })).toBe('01234');
    expect(await cell('<c r="A1" s="1"><v>0.25</v></c>', { formats: [10] })).toBe('0.25');
    expect(await refusal(ofRows('<row r="1"><c r="A1"><v>abc</v></c></row>'))).toBe(
      'unsupported_format: The workbook is damaged or not understood: cell A1 is no number',
    );
  });

  // proves: workbook-exact
  it('dates and times are written as ISO 8601 with full precision', async () => {
    for (const [format, serial, text] of [
      [14, '45413', '2024-05-01'],
      ['yyyy\\-mm\\-dd', '45413.5729166667', '2024-05-01T13:45:00'],
      ['dd.mm.yyyy hh:mm', '45413', '2024-05-01T00:00:00'],
      [22, '45413.573263888886', '2024-05-01T13:45:30'],
      ['[$-409]m/d/yy h:mm AM/PM;@', '45413.9999999', '2024-05-01T23:59:59.991'],
      ['[$-409]m/d/yy h:mm AM/PM;@', '45413.99999999999', '2024-05-02T00:00:00'],
      ['mmm', '45413', '2024-05-01'],
      ['"Day: "d', '45413', '2024-05-01'],
      ['[Red]0.0" days"', '45413', '45413'],
      ['_-* #,##0.00\\ "dh"_-', '45413.5', '45413.5'],
      ['0.00E+00', '45413', '45413'],
      ['General" d"', '45413', '45413'],
      ['h:mm', '0.5', '12:00:00'],
      [21, '0.000011574', '00:00:01'],
      ['h:mm', '45413.5', '2024-05-01T12:00:00'],
      ['[h]:mm:ss', '1.0632060185185186', 'PT25H31M1S'],
      [46, '0', 'PT0S'],
      [45, '0.25', '06:00:00'],
      ['[mm]:ss', '-0.0625', '-PT1H30M'],
      [14, '1', '1900-01-01'],
      [14, '59', '1900-02-28'],
      [14, '61', '1900-03-01'],
      [14, '2958465', '9999-12-31'],
      [14, '0.5', '12:00:00'],
    ] as const) {
      const csvText = await cell(`<c r="A1" s="1"><v>${serial}</v></c>`, { formats: [format] });
      expect(csvText, `${format} ${serial}`).toBe(text);
    }
    const from1904 = { formats: [14], from1904: true };
    expect(await cell('<c r="A1" s="1"><v>43951</v></c>', from1904)).toBe('2024-05-01');
    expect(await cell('<c r="A1" s="1"><v>0</v></c>', from1904)).toBe('1904-01-01');
    expect(await cell('<c r="A1" t="d"><v>2024-05-01T13:45:00</v></c>')).toBe('2024-05-01T13:45:00');
  });

  it('invalid dates and errors are read as empty, with a note', async () => {
    const rows = ['0', '60', '-1', '2958466'].map(
      (v, i) => `<row r="${i + 1}"><c r="A${i + 1}" s="1"><v>${v}</v></c><c><v>1</v></c></row>`,
    );
    expect(await readBook(ofRows(rows.join(''), { formats: [14] }))).toMatchObject({
      text: ',1\n,1\n,1\n,1\n',
      notes: ['4 cells formatted as a date that hold none read as empty, the first in A1.'],
    });
    const errors = '<row r="1"><c r="A1" t="e"><v>#N/A</v></c><c t="b"><v>0</v></c></row>';
    expect(await readBook(ofRows(errors))).toMatchObject({
      text: ',false\n',
      notes: ['1 cell with an error such as #N/A read as empty, the first in A1.'],
    });
  });

  // proves: workbook-exact
  it('the results of formulas are read, and a file without results is refused', async () => {
    expect(await cell('<c r="A1"><f>1+1</f><v>2</v></c>')).toBe('2');
    expect(await cell('<c r="A1" t="str"><f>"a"&amp;"b"</f><v>ab</v></c>')).toBe('ab');
    expect(await cell('<c r="A1" t="str"><f>""</f><v></v></c>')).toBe('');
    for (const uncalculated of ['<c r="A1"><f>1+1</f></c>', '<c r="A1"><f>1+1</f><v/></c>']) {
      expect(await refusal(ofRows(`<row r="1">${uncalculated}</row>`))).toContain(
        'cell A1 holds a formula whose result is not in the file',
      );
    }
    // If a workbook has the setting `fullCalcOnLoad`, a 0 may be a placeholder for a result that
    // has not been calculated.
    const calculation = '<calcPr calcId="124519" fullCalcOnLoad="1"/>';
    expect(
      await refusal(ofRows('<row r="1"><c r="A1"><f>1+1</f><v>0</v></c></row>', { calculation })),
    ).toContain('cell A1 holds a formula whose result is not in the file');
    expect(await cell('<c r="A1"><v>0</v></c>', { calculation })).toBe('0');
  });

  it('escapes of characters are decoded, and half a surrogate pair is invalid UTF-8', async () => {
    expect(await cell(`<c t="inlineStr"><is><t>a_x000D_\nb_x005F_x000D_</t></is></c>`)).toBe(
      '"a\r\nb_x000D_"',
    );
    expect(await cell('<c t="str"><v>_xD83D__xDE00_</v></c>')).toBe('😀');
    const bytes = ofRows('<row r="1"><c t="inlineStr"><is><t>a_xD83D_b</t></is></c></row>');
    const archive = await ZipArchive.open(wholeFile(bytes));
    const { csv } = await openWorkbook({ archive, guard: () => undefined }, undefined, []);
    expect(await collect(csv)).toEqual(Buffer.from('a\xffb\n', 'latin1'));
  });

  it('line numbers equal row numbers, and cells keep their columns', async () => {
    const rows = `<row r="3"><c r="B3"><v>1</v></c><c r="AA3"><v>2</v></c><c r="AB3" s="0"/></row><row r="4"><c r="A4" s="0"/></row>
      <row r="7"><c r="A7"><v>3</v></c></row><row r="9"><c r="A9"/></row>`;
    expect((await readBook(ofRows(rows))).text).toBe(`\n\n,1${','.repeat(25)}2\n\n\n\n3${','.repeat(26)}\n`);
    const unnumbered = '<row><c><v>1</v></c><c><v>2</v></c></row><row><c r="B2"><v>3</v></c></row>';
    expect((await readBook(ofRows(unnumbered))).text).toBe('1,2\n,3\n');
  });

  it('elements of other namespaces, such as later Excels add, are ignored', async () => {
    const later = `<extLst><ext xmlns:x15="http://schemas.microsoft.com/office/spreadsheetml/2010/11/main" uri="{1}">
      <x15:workbookPr chartTrackingRefBase="1"/><x15:calcPr fullCalcOnLoad="1"/>
      <x15:sheets><x15:sheet name="Ghost" sheetId="9" r:id="rId9"/></x15:sheets></ext></extLst>`;
    const from1904 = { formats: [14], from1904: true, calculation: later };
    expect(await cell('<c r="A1" s="1"><f>A2</f><v>43951</v></c>', from1904)).toBe('2024-05-01');
    const repeatedElements = '<calcPr fullCalcOnLoad="1"/><workbookPr/><calcPr/>';
    expect(
      await cell('<c r="A1" s="1"><v>43951</v></c>', { ...from1904, calculation: repeatedElements }),
    ).toBe('2024-05-01');
    expect(
      await refusal(
        ofRows('<row r="1"><c r="A1"><f>1</f><v>0</v></c></row>', { calculation: repeatedElements }),
      ),
    ).toContain('whose result is not in the file');
    const sheet = `<w:worksheet xmlns:w="http://purl.oclc.org/ooxml/spreadsheetml/main" xmlns:x="y"><w:sheetData>
      <w:row r="1"><w:c r="A1"><x:v>6</x:v><w:v>5</w:v></w:c><x:c r="B1"><w:v>7</w:v></x:c>
      <c r="C1"><v>8</v></c><s:c xmlns:s="http://purl.oclc.org/ooxml/spreadsheetml/main" r="D1"><s:v>9</s:v></s:c></w:row></w:sheetData>
      <x:alternate><w:mergeCell ref="A1:B1"/></x:alternate></w:worksheet>`;
    expect(await readBook(ofRows('', { parts: { 'xl/worksheets/sheet1.xml': sheet } }))).toMatchObject({
      text: '5,,,9\n',
      notes: [],
    });
  });
});

describe('the choice of a sheet', () => {
  const sheets = [
    { name: 'Cover', rows: '<row r="1"><c r="A1" s="0"/></row>' },
    { name: 'Secret', rows: textRow(1, 'h'), state: 'hidden' as const },
    { name: 'Users', rows: textRow(1, 'u') },
    { name: '1', rows: textRow(1, 'one') },
  ];

  it('the first visible sheet with data is read, and all sheets are named', async () => {
    expect(await readBook(workbookFile({ sheets }))).toEqual({
      sheet: 'Users',
      sheets: ['Cover', 'Secret', 'Users', '1'],
      text: 'u\n',
      notes: [],
    });
  });

  it('a requested sheet is found by name, and otherwise by number', async () => {
    expect((await readBook(workbookFile({ sheets }), 'users')).sheet).toBe('Users');
    expect((await readBook(workbookFile({ sheets }), 'Secret')).text).toBe('h\n');
    expect((await readBook(workbookFile({ sheets }), '3')).sheet).toBe('Users');
    expect((await readBook(workbookFile({ sheets }), '1')).sheet).toBe('1');
    expect(await refusal(workbookFile({ sheets }), '5')).toBe(
      'invalid_field: The workbook has no sheet "5"; it has: Cover, Secret, Users, 1 (sheet)',
    );
  });

  it('a workbook without data is refused as empty', async () => {
    expect(await refusal(workbookFile({ sheets: sheets.slice(0, 1) }))).toContain('empty_file');
  });
});

describe('a damaged or hostile workbook', () => {
  it('a damaged workbook is refused with its fault', async () => {
    for (const [rows, words] of [
      ['<row r="2"/><row r="1"/>', 'row 1 follows row 2'],
      ['<row r="1"><c r="B1"/><c r="A1"/></row>', 'cell A1 stands in row 1 after column 2'],
      ['<row r="1"><c r="A11"/></row>', 'cell A11 stands in row 1'],
      ['<row r="1048577"/>', 'row 1048577 follows row 0'],
      ['<row r="1"><c r="XFE1"/></row>', 'cell XFE1'],
      ['<row r="1"><c r="A1" t="s"><v>1</v></c></row>', 'cell A1 has a text that is not there'],
      ['<row r="1"><c r="A1" t="x"><v>1</v></c></row>', 'cell A1 has the type x'],
      ['<row r="1"><c r="A1" t="b"><v>2</v></c></row>', 'cell A1 is neither true nor false'],
      ['<row r="1"><c r="A1" s="7"><v>2</v></c></row>', 'cell A1 has a style that is not there'],
      ['<row r="1"><c r="A1"><v>1</w></c></row>', 'damaged or not understood'],
      ['<row r="1"><c r="A1"><v>&lol;</v></c></row>', 'undefined entity'],
      ['<a>'.repeat(300), 'nested too deeply'],
      [`<row r="${'9'.repeat(5000)}"/>`, `row ${'9'.repeat(196)}…`],
      [`<!--${'x'.repeat(1 << 21)}-->`, 'too long'],
      [`<row r="1"><c r="A1" t="str"><v>${'x'.repeat(70_000)}</v></c></row>`, 'more than 65536 characters'],
    ] as const) {
      expect(await refusal(ofRows(rows), '1'), words).toContain(words);
    }
    const parts = { 'xl/worksheets/sheet1.xml': '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>' };
    expect(await refusal(ofRows('', { parts }))).toContain('it has a DOCTYPE');
  });

  // proves: hostile-files
  it('a workbook that is cut or changed at any byte is read correctly or refused', async () => {
    const intact = ofRows(textRow(1, 'user_id', 'name') + textRow(2, 'u1', 'Ann'), { formats: [14] });
    await fc.assert(
      fc.asyncProperty(fc.nat(intact.length - 1), fc.nat(255), fc.boolean(), async (at, byte, isCut) => {
        const bytes = Buffer.from(isCut ? intact.subarray(0, at) : intact);
        if (!isCut) bytes[at] = byte;
        const result = await readBook(bytes).catch((error: unknown) => error);
        if (result instanceof InputError) return;
        expect(result).toEqual({
          sheet: 'Data',
          sheets: ['Data'],
          text: 'user_id,name\nu1,Ann\n',
          notes: [],
        });
      }),
      { numRuns: runs(500) },
    );
  });

  // proves: workbook-exact
  it('any text and any number of a workbook are read exactly', async () => {
    const text = fc
      .string({ unit: 'binary', maxLength: 30 })
      .map((each) => each.replace(/[^\t\n -\ud7ff\ue000-\ufffd]/gu, '.'));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(text, fc.double({ noNaN: true, noDefaultInfinity: true })), {
          minLength: 1,
          maxLength: 5,
        }),
        async (rows) => {
          const xml = rows.map(
            ([value, number], index) =>
              `<row r="${index + 1}"><c t="inlineStr"><is><t>${escapeXml(`"${value.replaceAll('_x', '_')}`)}</t></is></c><c><v>${number}</v></c></row>`,
          );
          const lines = rows.map(
            ([value, number]) =>
              `"""${value.replaceAll('_x', '_').replaceAll('"', '""')}",${number === 0 ? 0 : number}\n`,
          );
          expect((await readBook(ofRows(xml.join('')))).text).toBe(lines.join(''));
        },
      ),
      { numRuns: runs(200) },
    );
  });
});
