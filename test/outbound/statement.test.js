'use strict'

const { test } = require('tap')
const { sanitise, DIALECTS } = require('../../lib/features/libraries/statement')
const { randomFrom } = require('../support/random')

// [statement, recorded text, summary]
const STATEMENTS = {
  mysql: [
    ["SELECT * FROM users WHERE id = 7 AND name = 'o\\'brien -- x' # why", 'SELECT * FROM users WHERE id = ? AND name = ?', 'SELECT users'],
    ['insert into `shop`.`orders` (a, b) values (1, \'x\'), (-2.5e-3, 0xFF)', 'insert into `shop`.`orders` (a, b) values (?, ?), (-?, ?)', 'INSERT shop.orders'],
    ["SELECT a FROM t WHERE id IN (1, 2 ,3) AND b IN ('x','y')", 'SELECT a FROM t WHERE id IN (?) AND b IN (?)', 'SELECT t'],
    ['UPDATE users SET a = "secret", b = \'it\'\'s\' WHERE c = ?', 'UPDATE users SET a = ?, b = ? WHERE c = ?', 'UPDATE users'],
    ["SELECT _utf8'secret', x'4D', b'01', N'n' /* by 'me' */ FROM t1", 'SELECT _utf8?, x?, b?, N?   FROM t1', 'SELECT t1'],
    ['INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = 5', 'INSERT INTO t VALUES (?) ON DUPLICATE KEY UPDATE a = ?', 'INSERT t'],
    ["SELECT 'C:\\', 'secret' FROM t", 'SELECT ?', 'SELECT'], // NO_BACKSLASH_ESCAPES
    ["SELECT 'o\\'brien' FROM t", 'SELECT ?', 'SELECT'],
    ['SET a = word, b = 1', 'SET a = ?, ? = ?', 'SET'],
    ["SELECT 'never closed", 'SELECT ?', 'SELECT'],
    ["SELECT 1 /* never 'closed", 'SELECT ?', 'SELECT'],
    ['select 1; select 2', 'select ?; select ?', 'SELECT SELECT'],
    ['', '', ''],
    ['   ', '', '']
  ],
  postgresql: [
    ['SELECT o.id, EXTRACT(YEAR FROM o.at) FROM orders o JOIN users u ON u.id = o.user_id WHERE x IS DISTINCT FROM 3',
      'SELECT o.id, EXTRACT(YEAR FROM o.at) FROM orders o JOIN users u ON u.id = o.user_id WHERE x IS DISTINCT FROM ?', 'SELECT orders users'],
    ["SELECT $$it's$$, $tag$ $1 $$ $tag$, E'a\\'b', 'C:\\', \"Col\" FROM \"Users\" WHERE id = $12 -- bye", 'SELECT ?, ?, E?, ?, "Col" FROM "Users" WHERE id = $12', 'SELECT Users'],
    ['WITH recent AS (SELECT * FROM events) SELECT * FROM recent JOIN users ON true', 'WITH recent AS (SELECT * FROM events) SELECT * FROM recent JOIN users ON true', 'SELECT events SELECT users'],
    ['SELECT (SELECT count(*) FROM b) FROM a', 'SELECT (SELECT count(*) FROM b) FROM a', 'SELECT SELECT b a'],
    ['SELECT 1 /* a /* b */ secret */ FROM t', 'SELECT ?   FROM t', 'SELECT t'],
    ['SET app.secret TO word; ALTER ROLE r SET app.secret TO word', 'SET app.secret TO ?; ALTER ROLE r SET app.secret TO ?', 'SET ALTER'],
    ['UPDATE t SET a = b', 'UPDATE t SET a = b', 'UPDATE t'],
    ['INSERT INTO t SELECT * FROM u', 'INSERT INTO t SELECT * FROM u', 'INSERT t SELECT u'],
    ['CREATE TABLE IF NOT EXISTS t1 (id int)', 'CREATE TABLE IF NOT EXISTS t1 (id int)', 'CREATE TABLE t1'],
    ['SELECT * FROM t FOR UPDATE', 'SELECT * FROM t FOR UPDATE', 'SELECT t']
  ],
  mssql: [["SELECT [a b] FROM [dbo].[users] WHERE n = N'secret' AND x = @p1", 'SELECT [a b] FROM [dbo].[users] WHERE n = N? AND x = @p1', 'SELECT dbo.users']],
  sqlite: [["insert into t values(1.0,'secret')", 'insert into t values(?,?)', 'INSERT t']],
  graphql: [['query Q { user(id: 7, name: "a \\" b", bio: """long "one" """) { id } } # bye', 'query Q { user(id: ?, name: ?, bio: ?) { id } }', 'QUERY']]
}

for (const [dialect, statements] of Object.entries(STATEMENTS)) {
  test(`${dialect}: values are removed, and the rest is kept`, async (t) => {
    for (const [statement, text, summary] of statements) {
      t.match(sanitise(statement, DIALECTS[dialect]), { text, summary }, statement)
    }
  })
}

test('no value remains in a statement of random pieces', async (t) => {
  const pieces = ["'SECRET'", "'SE''CRET'", "'x\\\\SECRET'", '"SECRET"', ' 5347 ', ' WHERE ', ',', '(', ')', '`col`', '--\n', '/* SECRET */', ' IN ', '= ', '?', ';', 'SELECT ', ' FROM t ', "'", '\n']
  const next = randomFrom(7)
  const random = (max) => Math.floor(next() * max)
  for (let i = 0; i < 3000; i++) {
    // An odd quote swaps inside and outside for the database, too. So the pieces are complete, and a quote may only come last.
    const statement = Array.from({ length: random(12) }, () => pieces[random(pieces.length - 2)]).join('') + (random(2) === 0 ? "'SECRET" : '')
    const { text } = sanitise(statement, DIALECTS.mysql)
    if (text.includes('SECRET') || text.includes('5347')) t.fail(`${statement} → ${text}`)
  }
})

test('the lengths that are read and written are limited', async (t) => {
  const huge = sanitise(`INSERT INTO blobs VALUES ('${'x'.repeat(10e6)}')`, DIALECTS.mysql)
  t.match(huge, { text: 'INSERT INTO blobs VALUES (?', summary: 'INSERT blobs' })
  t.ok(sanitise(`SELECT ${'column_name, '.repeat(1e6)}`, DIALECTS.mysql).text.length <= 4096)
  t.ok(sanitise('SELECT a FROM t '.repeat(1000), DIALECTS.mysql).summary.length <= 255)
  t.ok(sanitise('('.repeat(1e6), DIALECTS.mysql).text.length <= 4096)
})
