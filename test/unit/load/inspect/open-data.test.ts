import { describe, expect, test } from 'vitest';
import { inspectText as inspect } from './inspect-text.ts';

/** Files as public bodies publish them: the column that is the first to have a different value in each record, or none. */
const files: readonly (readonly [string, string | null, string])[] = [
  [
    'air quality',
    'messstelle',
    'messstelle;komponente;wert\nDEBE010;NO2;21,4\nDEBE018;NO2;19,0\nDEBE034;NO2;21,4\n',
  ],
  [
    'airports',
    'ident',
    'ident,type,name,elevation_ft\nEDDB,large,Berlin,157\nEDDF,large,Frankfurt,364\nEDDM,large,Munich,1487\n',
  ],
  ['baby names', null, 'Year,Sex,Name,Count\n2023,F,Emma,410\n2023,M,Noah,410\n2024,F,Emma,398\n'],
  ['bathing waters', 'bwid', 'bwid,region,quality\nUK1,North,good\nUK2,North,good\nUK3,South,poor\n'],
  [
    'bicycle counts',
    'Datum',
    'Datum,Zählstelle,Anzahl\n2024-01-01 00:00,Oberbaum,12\n2024-01-01 01:00,Oberbaum,9\n2024-01-01 02:00,Oberbaum,12\n',
  ],
  [
    'budget lines',
    'Programa',
    '\ufeffEjercicio;Programa;Importe\n2024;9121;1.200,50\n2024;9122;900,00\n2024;9231;1.200,50\n',
  ],
  ['bus stops', 'NaptanCode', 'Locality,NaptanCode,Bearing\nLeith,LTH1,N\nLeith,LTH2,S\nPortobello,PTB1,N\n'],
  [
    'councillors',
    'Councillor',
    'Councillor,Ward,Party\nA. Reid,City,Green\nB. Shaw,City,Labour\nC. Kerr,Leith,Green\n',
  ],
  [
    'country codes',
    'ISO3166-1-Alpha-3',
    'Region,ISO3166-1-Alpha-3,Dial\nEurope,NOR,47\nEurope,SWE,46\nEurope,FIN,358\n',
  ],
  ['crime', 'Reference', 'Month,Force,Reference\n2024-01,Kent,K-1\n2024-01,Kent,K-2\n2024-02,Kent,K-3\n'],
  [
    'dog licences',
    'LicenseNumber',
    'Breed,Borough,LicenseNumber\nPug,Queens,9\nPug,Bronx,10\nBoxer,Queens,11\n',
  ],
  [
    'earthquakes',
    'time',
    'time,mag,place\n2024-01-01T00:10:00Z,4.1,Chile\n2024-01-01T00:20:00Z,4.1,Peru\n2024-01-01T00:31:00Z,5.0,Chile\n',
  ],
  [
    'election results',
    'AGS',
    '# Endgültiges Ergebnis\nLand;AGS;Gültig\nBB;12051000;40\nBB;12052000;41\nBB;12053000;40\n',
  ],
  ['food hygiene', 'FHRSID', 'Authority,FHRSID,Rating\nBath,101,5\nBath,102,5\nBath,103,3\n'],
  [
    'holidays',
    'Fecha',
    'Fecha|Ámbito|Nombre\n2024-01-01|Nacional|Año Nuevo\n2024-01-06|Nacional|Reyes\n2024-03-29|Nacional|Santo\n',
  ],
  [
    'museums',
    'museofile',
    'region;museofile;ville\nBretagne;M0001;Brest\nBretagne;M0002;Brest\nCorse;M0003;Ajaccio\n',
  ],
  [
    'permits',
    'Permit Number',
    'Permit Type,Permit Number,Valuation\nNew,2024-1,100\nNew,2024-2,\nRepair,2024-3,100\n',
  ],
  [
    'population',
    'Gemeente',
    'Provincie\tGemeente\tInwoners\nDrenthe\tAssen\t68000\nDrenthe\tEmmen\t107000\nDrenthe\tMeppel\t68000\n',
  ],
  ['rainfall', 'station', 'station,jan,feb\nBergen,190,150\nOslo,50,40\nVoss,190,150\n'],
  ['school lunches', null, 'School,Menu,Price\nEast,A,3\nEast,B,3\nWest,A,3\n'],
  ['trees', 'OBJEKTID', 'Gattung,OBJEKTID,Höhe\nQuercus,1,12\nQuercus,2,\nTilia,3,12\n'],
  ['vehicle fleet', 'Kennzeichen', 'Ämter,Kennzeichen,Baujahr\nBau,B-1,2019\nBau,B-2,2019\nParks,B-3,2020\n'],
];

describe('a file none of whose columns is named like an id', () => {
  // proves: inspection
  test.each(files)('%s: each column shows what it holds, and %s is proposed', async (_, id, text) => {
    const found = await inspect(text, text.startsWith('#') ? { source: { comment: '#' } } : {});
    expect(found.problem?.problems[0].code).toBe('unrecognised_columns');
    expect(found.map).toEqual(id === null ? {} : { [id]: 'user_id' });
    expect(found.columns.length).toBeGreaterThan(1);
    for (const { type, filled, distinct, samples } of found.columns) {
      expect(type).not.toBeNull();
      expect(filled).toBeGreaterThanOrEqual(2);
      expect(samples.length).toBe(Math.min(3, distinct));
    }
    if (id === null) return;
    expect(found.columns.find(({ name }) => name === id)).toMatchObject({
      becomes: 'user_id',
      reason: 'the first column with a value in each of the 3 records looked at, and no value twice',
      filled: 3,
      distinct: 3,
    });
    const loaded = await inspect(text, {
      map: found.map,
      ...(text.startsWith('#') && { source: { comment: '#' } }),
    });
    expect([loaded.problem, loaded.rows]).toEqual([null, found.rows]);
  });

  test('the same holds for records of JSON', async () => {
    const records = [
      { ort: 'Kiel', pegel: 'P1', cm: 501 },
      { ort: 'Kiel', pegel: 'P2', cm: 499 },
      { ort: 'Husum', pegel: 'P3' },
    ];
    const found = await inspect(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    expect(found.map).toEqual({ pegel: 'user_id' });
    expect(found.columns.find(({ name }) => name === 'cm')).toMatchObject({
      type: 'numeric',
      filled: 2,
    });
  });

  // proves: inspection
  test('of a wide one fewer records are looked at, and all columns are shown', async () => {
    const columns = Array.from({ length: 10_000 }, (_, n) => `m${n}`);
    const lines = Array.from({ length: 500 }, (_, row) => `r${row}${',0'.repeat(columns.length - 1)}`);
    const found = await inspect(`${columns.join(',')}\n${lines.join('\n')}\n`);
    expect(found.map).toEqual({ m0: 'user_id' });
    expect(found.columns).toHaveLength(columns.length);
    expect(found.records).toBe(25);
    expect(found.isWhole).toBe(false);
  });
});
