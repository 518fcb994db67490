/* report.js -- sorts a table by the column whose head is clicked, the largest first. */
document.querySelectorAll('table.sort').forEach(function (table) {
  var heads = table.querySelectorAll('th'), body = table.tBodies[0];
  heads.forEach(function (head, column) {
    function value(row) {
      var cell = row.cells[column], number = cell.getAttribute('data-n');
      return number === null ? cell.textContent : Number(number);
    }
    function sort() {
      var up = head.getAttribute('aria-sort') === 'descending';
      var rows = Array.prototype.slice.call(body.rows);
      rows.sort(function (left, right) {
        var a = value(left), b = value(right);
        return (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1);
      });
      rows.forEach(function (row) { body.appendChild(row); });
      heads.forEach(function (other) { other.removeAttribute('aria-sort'); });
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
    }
    head.tabIndex = 0;
    head.addEventListener('click', sort);
    head.addEventListener('keydown', function (e) { if (e.key === 'Enter') sort(); });
  });
});
