// The report page's script: a slider widens a drawing, and the title of what the pointer is over is shown as text.
// Neither a less-than sign nor an ampersand may stand here, so that the page reads as HTML and as XML alike.
document.querySelectorAll('[data-zoom]').forEach(function (box) {
  var wide = box.querySelector('.wide');
  var out = box.querySelector('output');
  var range = box.querySelector('input');
  range.addEventListener('input', function () {
    wide.style.width = range.value * 100 + '%';
  });
  box.addEventListener('pointerover', function (event) {
    var title = event.target.querySelector(':scope>title');
    if (title) out.textContent = title.textContent;
  });
});
